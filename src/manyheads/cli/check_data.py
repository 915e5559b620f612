"""manyheads check-data."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

if TYPE_CHECKING:
    from manyheads.check_data.checked import Checked
    from manyheads.check_data.text_check import CheckedText, Cleaned
    from manyheads.cli.show import Row
    from manyheads.data.checks.image_checks import ImageFinding
    from manyheads.data.checks.text_checks import Finding

Column = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Its name, or its number from 1.")
]


def run(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Corpora: the stem of two files, a .tsv, .csv, .jsonl, .parquet or .tmx file, "
            "hub:owner/name; images: a folder, .tar, or any table with --images; images with "
            "texts: any of these or COCO's .json, with --captions; or one recipe.",
        ),
    ],
    source: Annotated[str | None, typer.Option(help="Language of the source side.")] = None,
    target: Annotated[str | None, typer.Option(help="Language of the target side.")] = None,
    test: Annotated[
        str | None, typer.Option(metavar="PATH", help="Test data that must not be among these.")
    ] = None,
    valid: Annotated[
        str | None, typer.Option(metavar="PATH", help="The same for validation data.")
    ] = None,
    source_column: Column = None,
    target_column: Column = None,
    fix: Annotated[
        Path | None,
        typer.Option(metavar="OUT", help="Write the cleaned corpus, and OUT.log.jsonl."),
    ] = None,
    images: Annotated[
        bool, typer.Option("--images", help="These are images: a table of paths and labels.")
    ] = False,
    image: Annotated[
        str, typer.Option(metavar="COLUMN", help="Of a table of images: paths or images.")
    ] = "image",
    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="Of a table of images: the labels.")
    ] = "label",
    multi_label: Annotated[
        bool, typer.Option("--multi-label", help="Several labels an image, separated by ;.")
    ] = False,
    captions: Annotated[
        bool, typer.Option("--captions", help="These are images with texts.")
    ] = False,
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LANGUAGE=COLUMN,...",
            help="Of a table of images with texts: the columns of a language. Repeatable.",
        ),
    ] = None,
    caption: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The one column of texts: caption.")
    ] = None,
    language: Annotated[str | None, typer.Option(help="Language of these texts: en.")] = None,
    language_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The language of the texts of a row.")
    ] = None,
    image_folder: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Of the images that a table names.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look for damage in parallel text and images: where, and what to do.

    Exit code 1 with errors.
    """
    from manyheads.check_data.image_check import (
        are_captions,
        are_images,
        check_caption_recipe,
        check_captions,
        check_image_recipe,
        check_images,
        named_columns,
    )
    from manyheads.check_data.text_check import (
        check,
        clean,
        cleaned_files,
        is_recipe,
        plan,
        plan_recipe,
    )
    from manyheads.cli.show import print_findings, print_json
    from manyheads.errors import UsageError

    of_texts = (source, target, source_column, target_column, fix)
    of_captions = {
        "texts": text,
        "caption": caption,
        "language": language,
        "language_column": language_column,
        "images": image_folder,
    }
    given = {key: value for key, value in of_captions.items() if value}
    are_all_captions = captions or bool(given) or all(map(are_captions, paths))
    are_all_images = images or are_all_captions or all(map(are_images, paths))
    if are_all_images and any(each is not None for each in of_texts):
        raise UsageError("Images have no --source, --target, their columns, or --fix.")
    if fix is not None and len(paths) > 1:
        raise UsageError("--fix cleans one corpus at a time: give one PATH.")
    recipe = any(map(is_recipe, paths))
    if recipe and (len(paths) > 1 or any((test, valid, given, *of_texts))):
        raise UsageError("A recipe names its own data: give one recipe and no other data.")
    found: Iterable[Checked]
    row: Callable[[Any], Row] = _image_row if are_all_images else _text_row
    if are_all_captions:
        found = (
            check_caption_recipe(paths[0])
            if recipe
            else check_captions(paths, named_columns(image=image, **given), test=test, valid=valid)
        )
    elif are_all_images:
        columns: Any = {"image": image, "label": label, "multi_label": multi_label}
        found = (
            check_image_recipe(paths[0])
            if recipe
            else check_images(paths, **columns, test=test, valid=valid)
        )
    else:
        sides = (_column(source_column), _column(target_column))
        plans = (
            plan_recipe(paths[0])
            if recipe
            else plan(paths, source=source, target=target, columns=sides, test=test, valid=valid)
        )
        if fix is not None:
            cleaned_files(plans[0][0], fix)  # refused before the work, not after it
        found = (check(*each) for each in plans)
    checked = []
    for each in found:
        checked.append(each)
        if not json:
            print_findings(each.heading, [row(finding) for finding in each.findings])
    cleaned = None if fix is None else clean(cast("CheckedText", checked[0]), fix)
    if json:
        print_json({"corpora": [each.as_json() for each in checked], "fixed": _files(cleaned)})
    elif cleaned is not None:
        print(
            f"{', '.join(map(str, cleaned.files))}: {cleaned.kept:,} pairs kept, "
            f"{cleaned.changed:,} of them changed; {cleaned.dropped:,} dropped: see {cleaned.log}"
        )
    if any(each.errors for each in checked):
        raise typer.Exit(1)


def _column(text: str | None) -> str | int | None:
    number = text is not None and text.isdecimal() and len(text) < 10  # else a name
    return int(text) if text is not None and number else text


def _text_row(finding: "Finding") -> "Row":
    more = ", ..." if finding.count > len(finding.lines) else ""
    side = f" ({finding.sides})" if finding.sides != "both" else ""
    lines = ", ".join(map(str, finding.lines)) + more
    words = f"{finding.what}{side} [{finding.kind}]"
    return finding.severity, finding.count, lines, words, finding.remedy


def _image_row(finding: "ImageFinding") -> "Row":
    more = ["..."] if finding.count > len(finding.examples) else []
    words = f"{finding.what} [{finding.kind}]"
    about = "\n".join([*finding.examples, *more, finding.remedy])
    return finding.severity, finding.count, "", words, about


def _files(cleaned: "Cleaned | None") -> dict[str, object] | None:
    if cleaned is None:
        return None
    paths = {"files": [str(file) for file in cleaned.files], "log": str(cleaned.log)}
    return cleaned._asdict() | paths
