"""Heads that do nothing that depends on their input."""

from manyheads.lens.measures.idle_heads import Head

# Of the largest entropy: the head reads the mean of everything. Shipped models: at most 0.90.
UNIFORM = 0.99
# Of the attention: whatever comes in, the head reads the same place. Shipped: at most 0.72.
ONE_TOKEN = 0.95
SILENT = 0.01  # of what the median head of the layer can write. Shipped: at least 0.40
# Mean total variation of two maps. Copies have 0; the closest heads of shipped models 0.30.
ALIKE = 0.02


def judged(head: Head) -> str:
    """Explain why a head does nothing that depends on its input; "" if it does."""
    return f"writes nothing: {written_share(head)}" if head.writes <= SILENT else resting(head)


def written_share(head: Head) -> str:
    """Say how much a head writes, compared with the median head of its layer."""
    return f"{100 * head.writes:.2g}% of what the median head of its layer can"


def resting(head: Head) -> str:
    """Explain why a head's attention does not depend on its input; "" if it does."""
    if head.entropy >= UNIFORM:
        return f"uniform, {100 * head.entropy:.1f}% of the largest entropy"
    if head.favourite >= ONE_TOKEN:
        return f"{100 * head.favourite:.0f}% of its attention on {head.place}"
    return ""
