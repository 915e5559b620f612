"""T14: how much of a translation survives if cross-attention is replaced by something else."""

import tomllib
from importlib.resources import files

import torch

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import counted, judged, resampled, surely
from manyheads.labs.shipped_models import network, translated, translator
from manyheads.lens.cause.patching import permuted, uniform, without_largest, words
from manyheads.lens.panels import Cell
from manyheads.nn.editing.edits import edit

CHANGES = {"uniform": uniform, "permuted": permuted, "no largest": without_largest}
ANY = "any of the three"  # words that stay under one of the changes: the published figures' count
PUBLISHED = {"function": 68.0, "content": 21.0}  # % kept, Moradi et al. 2019, abstract
NEAR = 10.0  # points
# Articles, prepositions, pronouns, conjunctions, auxiliaries and particles, in lower case.
_TEXT = (files("manyheads.labs") / "function_words.toml").read_text(encoding="utf-8")
FUNCTION_WORDS = {code: frozenset(words.split()) for code, words in tomllib.loads(_TEXT).items()}


def kinds_of(pieces: list[str], language: str) -> list[str]:
    """Tell for each first piece of a word of a translation whether it is a function word.

    Later pieces of a word, and marks without a letter or digit, have no kind.

    Examples:
        >>> kinds_of(["▁Der", "▁Rad", "fahrer", "."], "de")
        ['function', 'content', '', '']
    """
    places, found, at = [], [""] * len(pieces), 0
    for piece in pieces:
        places.append([at + piece.startswith("▁"), at + len(piece)])
        at += len(piece)
    for group in words(places, "".join(pieces).replace("▁", " ")):
        word = "".join(pieces[n] for n in group).strip("▁.,;:!?\"'„“").lower()
        if any(each.isalnum() for each in word):
            found[group[0]] = "function" if word in FUNCTION_WORDS[language] else "content"
    return found


@torch.no_grad()
def measure(name: str, size: Size, root: str | None) -> Measured:
    """Count the words whose first piece stays the most probable, by kind, under each change."""
    shipped = translator(name)
    model, language = network(name), shipped.target
    last = model.config.decoder_layers
    found: Measured = {kind: {} for kind in PUBLISHED}
    counts: dict[str, list[int]] = {kind: [] for kind in PUBLISHED}
    for source, target in translated(name, size.sentences, root):
        read, own = target[:, :-1], target[0, 1:-1]
        firsts = kinds_of([*map(shipped.tokenizers.target.piece, own.tolist())], language)
        kinds = {kind: torch.tensor([each == kind for each in firsts]) for kind in PUBLISHED}
        for kind, chosen in kinds.items():
            counts[kind].append(int(chosen.sum()))
        for layers in ("all", "last"):
            same = {}
            for change, apply in CHANGES.items():
                with edit() as changes:
                    for layer in range(1 if layers == "all" else last, last + 1):
                        changes.attention("decoder", layer, "cross").pattern(apply)
                    same[change] = model(source, read)[0, :-1].argmax(dim=-1) == own
            same[ANY] = torch.stack([*same.values()]).any(dim=0)
            for change, stays in same.items():
                for kind, chosen in kinds.items():
                    kept = found[kind].setdefault(f"{change}, {layers}", [])
                    kept.append(int((stays & chosen).sum()))
    return {"kept": found, "steps": counts}


def rows(measured: dict[str, Measured]) -> list[list[Cell]]:
    """Judge each change of each model: do function words survive surely more often than content?

    And are both shares near the published ones?
    """
    table: list[list[Cell]] = []
    for name, of in measured.items():
        for change in of["kept"]["function"]:
            kept = {
                kind: ([100.0 * n for n in of["kept"][kind][change]], of["steps"][kind])
                for kind in PUBLISHED
            }
            shares = {kind: resampled(each) for kind, each in kept.items()}
            near = all(abs(shares[kind].mean - PUBLISHED[kind]) <= NEAR for kind in PUBLISHED)
            sure = surely(resampled(kept["function"], kept["content"])) > 0
            is_published = change.startswith(ANY)
            published = "68 / 21" if is_published else ""
            verdict = judged(sure, sure and near) if is_published else judged(sure)
            table.append([name, change, published, *shares.values(), verdict])
    return table


def conclude(table: list[list[Cell]]) -> str:
    """Count the verdicts on the published figure, and name the other changes."""
    published_rows = [row for row in table if row[2]]
    parts = [
        f"{row[0]} {row[3].mean:.0f}% / {row[4].mean:.0f}%"  # type: ignore[union-attr]
        for row in published_rows
        if str(row[1]).endswith("all")
    ]
    others = [str(row[-1]) for row in table if not row[2]]
    return (
        "That most function words stay under one of three other cross-attentions, and few content "
        f"words, {counted([str(row[-1]) for row in published_rows])} of {len(published_rows)} "
        f"comparisons (in all layers: {', '.join(parts)}; published 68% / 21%); that function "
        f"words stay more often under each change alone {counted(others)} of {len(others)}."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Measure each model."""
    measured = bench.measured("{}", size.models, measure, size, bench.root)
    table = rows(measured)
    bars = {
        f"{name}, {kind}": {str(row[1]): row[3 + place] for row in table if row[0] == name}
        for name in measured
        for place, kind in enumerate(PUBLISHED)
    }
    return conclude(table), {"verdicts": table, "bars": bars}
