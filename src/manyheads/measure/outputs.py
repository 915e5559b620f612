"""What a model answers to every input of an evaluation: a file to read, and a page to look through.

A task gives rows; nothing here knows which task it is.
"""

import base64
import io
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from PIL import Image

from manyheads.data.images.image_set import ImageSet, Preprocessing
from manyheads.errors import ManyheadsError, MissingExtraError, UsageError
from manyheads.files import write_atomically, write_text
from manyheads.lens.view.plain_page import content_hash, html_document
from manyheads.lens.view.report import inline_json
from manyheads.measure.text_metrics import TEXT_METRICS, References
from manyheads.predict.text_reader import one_line
from manyheads.project.paths import make_room
from manyheads.strict_json import dumps

FILE, PAGE, ANSWERS = "outputs.jsonl", "index.html", "answers.txt"
SHOWN = 1000  # rows of a page, the worst; the file has all
SIDE = 112  # pixels of an image on the page
PLAIN_IMAGE = Preprocessing()  # in RGB, upright, on white
CONFUSED = 30  # pairs of a truth and a wrong answer that are listed


@dataclass(frozen=True, kw_only=True)
class OutputRow:
    """One input, what is right, what the model answers, and how good that is."""

    input: str  # a text, or the name of an image
    truth: Sequence[str]  # every right answer
    answer: str
    score: float  # from 0 to 100: the worst rows have the lowest
    right: bool
    probability: float | None = None  # of the answer; of a text the mean per token, geometric
    others: Sequence[tuple[str, float]] = ()  # the next answers, with their probabilities
    language: str | None = None
    image: Callable[[], Image.Image] | None = None


def image_of(images: ImageSet, index: int) -> Callable[[], Image.Image]:
    """Read an image of a set when a page shows it."""
    return lambda: images.image(index)


def sentence_scores(
    outputs: Sequence[str], references: Sequence[References], language: str = ""
) -> list[float]:
    """Score each sentence by chrF; without sacrebleu, which that needs, 100 for an exact match."""
    try:
        rows, value, _ = TEXT_METRICS["chrf"].statistics(outputs, references, language)
    except MissingExtraError:
        rows, value, _ = TEXT_METRICS["exact"].statistics(outputs, references, language)
    return [value(row) for row in rows]


def check_folder(folder: Path, inputs: Sequence[Path]) -> None:
    """Make the folder, before the work whose results it takes.

    Raises:
        UsageError: it is a file, an input or in one, or a folder that holds something else.
        OutputError: it cannot be made.
    """
    if folder.is_file():
        raise UsageError(f"{folder} is a file: name a folder for `outputs`.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / FILE).is_file():
        raise UsageError(
            f"{folder} holds other files: name a new folder for `outputs`, or one that an "
            "evaluation has written."
        )
    for name in (FILE, PAGE, ANSWERS):
        make_room(folder / name, *inputs)


def write_outputs(
    folder: Path, model: str, rows: Sequence[OutputRow], line: Mapping[str, Any], *, looks: bool
) -> None:
    """Write every row to outputs.jsonl and its answer to answers.txt, and the worst to index.html.

    Images that have no file of their own and are on the page are written to the folder `images`,
    so that `manyheads look` can be called with them; `looks`: the model can be looked into.
    """
    order = sorted(range(len(rows)), key=lambda number: (rows[number].score, number))
    saved: dict[str, Path] = {}  # files of images, which may be those of several rows
    shown = [_shown(folder, number, rows[number], saved) for number in order[:SHOWN]]
    for each in shown if looks else ():
        each["look"] = shlex.join(["manyheads", "look", model, each["input"]])
    paths = {each["number"]: each["input"] for each in shown}
    written = [
        {"number": n, **_plain(row), "input": paths.get(n, row.input)} for n, row in enumerate(rows)
    ]
    write_text(folder / ANSWERS, "".join(f"{one_line(row.answer)}\n" for row in rows))
    wrong = [row for row in rows if not row.right]
    confusions = Counter((" / ".join(row.truth), row.answer) for row in wrong)
    data = {
        "model": model,
        "data": line["data"],
        "metric": f"{line['metric']} {line['value']:.2f}",
        "count": len(rows),
        "wrong": len(wrong),
        "rows": shown,
        "confusions": [[*pair, n] for pair, n in confusions.most_common(CONFUSED) if n > 1],
    }
    write_atomically(folder / PAGE, _page(data).encode("utf-8", "replace"))
    write_text(folder / FILE, "".join(f"{dumps(each)}\n" for each in written))


def _plain(row: OutputRow) -> dict[str, Any]:
    fields = {key: value for key, value in vars(row).items() if key != "image"}
    fields |= {"score": round(row.score, 3), "truth": list(row.truth)}
    if row.probability is not None:
        fields["probability"] = round(row.probability, 5)
    fields["others"] = [[label, round(probability, 5)] for label, probability in row.others]
    return {key: value for key, value in fields.items() if value not in (None, [])}


def _shown(folder: Path, number: int, row: OutputRow, saved: dict[str, Path]) -> dict[str, Any]:
    shown = {"number": number, "others": [], **_plain(row)}
    if row.image is not None:
        try:
            image = row.image()
        except ManyheadsError as error:  # pixels of many channels: there is nothing to show
            return shown | {"note": str(error)}
        if not Path(row.input).is_file():
            if row.input not in saved:
                saved[row.input] = path = folder / "images" / f"{number:06}.png"
                make_room(path)
                write_atomically(path, _encoded(image, "png"))
            shown |= {"input": str(saved[row.input]), "name": row.input}
        shown["image"] = _thumbnail(image)
    return shown


def _thumbnail(image: Image.Image) -> str:
    kind = "png" if max(image.size) <= SIDE else "jpeg"
    small = PLAIN_IMAGE.upright(image)
    small.thumbnail((3 * SIDE, SIDE))  # lines of text are wide
    return f"data:image/{kind};base64,{base64.b64encode(_encoded(small, kind)).decode()}"


def _encoded(image: Image.Image, kind: str) -> bytes:
    content = io.BytesIO()
    image.save(content, kind, quality=85)
    return content.getvalue()


def _page(data: Mapping[str, Any]) -> str:
    static = Path(__file__).parent / "static"
    style, program = (
        (static / f"outputs.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")
    )
    policy = (
        f"default-src 'none'; script-src {content_hash(program)}; style-src {content_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    title = f"{data['model']} on {data['data']}: outputs"
    body = f"""<main id="outputs"><h1>{escape(title)}</h1>
<noscript>This page draws with JavaScript; {FILE} has the same rows.</noscript></main>
<script type="application/json" id="data">{inline_json(data)}</script>
<script type="module">{program}</script>"""
    return html_document(title, policy, style, body)
