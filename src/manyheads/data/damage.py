"""The kinds of damage that a check of parallel text knows, each with its remedy.

error: it cannot be trained on as it is. warning: training works, the model or its scores suffer.
note: worth a look, often as it should be.
"""

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class Kind(NamedTuple):
    """One kind of damage."""

    severity: Severity
    what: str
    remedy: str
    fix: Literal["drop", "change", ""] = ""  # what cleaning does about it


def _overlap(split: str) -> dict[str, Kind]:
    remedy = f"Remove these pairs from the training data, or scores on {split} are too good."
    return {
        f"{split}-overlap-pair": Kind("warning", f"the pair is also in {split}", remedy, "drop"),
        f"{split}-overlap-source": Kind(
            "warning", f"the source is also in {split}, translated otherwise", remedy, "drop"
        ),
        f"{split}-overlap-target": Kind(
            "note",
            f"the target is also in {split}, for another source",
            f"Common for short sentences; if they are long, {split} is not independent.",
        ),
    }


KINDS: dict[str, Kind] = {
    # --- What keeps a file from being read: reported by the readers of manyheads.data.formats
    "empty-file": Kind("error", "the file is empty", "Copy or export it again."),
    "damaged-gzip": Kind(
        "error", "the compressed file is cut off or damaged", "Copy or download it again."
    ),
    "unequal-counts": Kind(
        "error",
        "the two files have different numbers of lines",
        "Line N of one must translate line N of the other: find the missing or extra line.",
    ),
    "invalid-utf8": Kind(
        "error",
        "not valid UTF-8",
        "Convert the file from its real encoding, for example: iconv -f cp949 -t utf-8.",
        "drop",
    ),
    "invalid-record": Kind(
        "error",
        "not valid CSV, JSON or XML",
        "Repair the line, or export the file again.",
        "drop",
    ),
    "missing-column": Kind(
        "error",
        "a column or tab is missing",
        "Add the missing side, or name the columns (--source-column, --target-column).",
        "drop",
    ),
    "data-as-header": Kind(
        "error",
        "the first line should name the columns, but looks like data",
        "Add a header, or give column numbers: --source-column 1 --target-column 2.",
    ),
    "empty-side": Kind(
        "error", "one side is empty", "Remove the pair from both sides, or fill it in.", "drop"
    ),
    "incomplete-unit": Kind(
        "note",
        "units of the translation memory lack one of the languages",
        "Nothing to do: they are not pairs of these languages.",
        "drop",
    ),
    "windows-line-ends": Kind(
        "note", "Windows line ends (\\r\\n)", "Nothing to do: they are not part of the text."
    ),
    "leading-byte-order-mark": Kind(
        "note",
        "a byte order mark at the beginning of the file",
        "Nothing to do: it is not part of the text.",
    ),
    # --- What the corpus as a whole shows
    "shifted-lines": Kind(
        "error",
        "the sides are shifted against each other",
        "Where it begins a line was lost or added on one side: repair that place.",
        "drop",
    ),
    "swapped-sides": Kind(
        "warning",
        "source and target are exchanged",
        "Exchange them back; if it is all of them, exchange --source and --target.",
        "change",
    ),
    "header-as-data": Kind(
        "warning",
        "the first line looks like a header, not like a pair",
        "Remove it, or name the columns (--source-column, --target-column).",
        "drop",
    ),
    "duplicate-pair": Kind(
        "warning",
        "the pair occurs again",
        "Keep one of each, or they weigh more than others in training.",
        "drop",
    ),
    "many-targets": Kind(
        "note",
        "the source has 4 or more different targets",
        "Normal for short texts; otherwise keep the best translation.",
    ),
    **_overlap("test"),
    **_overlap("valid"),
    "length-ratio": Kind(
        "warning",
        "one side is much longer than the other",
        "Usually not translations of each other: check, and remove what is not.",
        "drop",
    ),
    # --- What a pair shows
    "copied": Kind(
        "warning",
        "the target is a copy of the source",
        "Remove untranslated pairs, or the model learns to copy.",
        "drop",
    ),
    "unexpected-script": Kind(
        "warning",
        "a side is not in the script of its language",
        "Check --source and --target; remove pairs in another language.",
        "drop",
    ),
    "unexpected-language": Kind(
        "warning",
        "a side looks like the other side's language",
        "Remove or translate it.",
        "drop",
    ),
    "different-numbers": Kind(
        "note",
        "the numbers differ between the sides",
        "Look for wrong or shifted translations; other units and calendars are fine.",
    ),
    "too-long": Kind(
        "warning",
        "a side has more than 250 words or 2,000 characters",
        "Split it into sentences; train.max_length leaves it out otherwise.",
        "drop",
    ),
    # --- What one text shows
    "replacement-character": Kind(
        "warning",
        "U+FFFD stands where a character was lost",
        "Go back to the original file and convert it with the right encoding.",
        "drop",
    ),
    "mojibake": Kind(
        "warning",
        "UTF-8 was read as Latin-1 (Ã¼ for ü)",
        "Read the original as UTF-8; --fix reverses it.",
        "change",
    ),
    "byte-order-mark": Kind(
        "warning", "a byte order mark (U+FEFF) within the text", "Remove it.", "change"
    ),
    "control-characters": Kind("warning", "control characters", "Remove them.", "change"),
    "invisible-characters": Kind(
        "warning",
        "invisible characters (zero-width space, soft hyphen, direction marks)",
        "Remove them: they split words for the tokenizer.",
        "change",
    ),
    "line-break": Kind("warning", "a line break within a text", "Replace it by a space.", "change"),
    "html-entities": Kind(
        "warning", "HTML entities (&amp;)", "Write the characters they stand for.", "change"
    ),
    "markup": Kind("note", "HTML tags", "Remove them, unless tags are to be translated along."),
    "no-words": Kind(
        "note", "hardly any letters: digits and punctuation", "Remove it unless it is meant."
    ),
    "only-url": Kind("note", "nothing but a web address", "Remove it.", "drop"),
    "repeated-characters": Kind(
        "note", "the same character over and over", "Shorten or remove it."
    ),
    "long-word": Kind(
        "note", "a word of more than 60 letters", "Look for missing spaces or encoded data."
    ),
    "unusual-spaces": Kind(
        "note",
        "unusual spaces or separators (U+2028, no-break space, tab)",
        "Replace them by plain spaces.",
        "change",
    ),
    "spacing": Kind(
        "note", "leading, trailing or repeated spaces", "Remove the extra spaces.", "change"
    ),
    "not-nfc": Kind(
        "note",
        "characters are decomposed (not NFC)",
        "Normalise to NFC, or equal words get different tokens.",
        "change",
    ),
}
