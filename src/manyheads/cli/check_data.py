"""manyheads check-data."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from manyheads.cli.printed_answers import Row, print_findings, print_json

if TYPE_CHECKING:
    from manyheads.check_data.checked import Checked
    from manyheads.check_data.text_check import CheckedText
    from manyheads.data.checks.image_checks import ImageFinding
    from manyheads.data.checks.text_checks import Finding
    from manyheads.recipe_data.image_data import ImageData


def run(
    paths: list[str],
    source: str | None = None,
    target: str | None = None,
    test: str | None = None,
    valid: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    fix: Path | None = None,
    images: bool = False,
    image: str = "image",
    label: str = "label",
    multi_label: bool = False,
    captions: bool = False,
    text: list[str] | None = None,
    caption: str | None = None,
    language: str | None = None,
    language_column: str | None = None,
    image_folder: str | None = None,
    json: bool = False,
) -> None:
    """Look for damage in parallel text and images: where, and what to do.

    Exit code 1 with errors.
    """
    from manyheads.check_data.image_check import (
        are_captions,
        are_images,
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
    from manyheads.errors import UsageError
    from manyheads.recipe_data.image_data import LabelledImageData

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
    checks: Iterable[Checked]
    row: Callable[[Any], Row] = _image_row if are_all_images else _text_row
    if are_all_images and recipe:
        checks = check_image_recipe(paths[0], captions=are_all_captions)
    elif are_all_images:
        data: ImageData = LabelledImageData(
            train="", image=image, label=label, multi_label=multi_label
        )
        if are_all_captions:
            data = named_columns(image=image, **given)
        checks = check_images(paths, data, test=test, valid=valid)
    else:
        sides = (_column(source_column), _column(target_column))
        plans = (
            plan_recipe(paths[0])
            if recipe
            else plan(paths, source=source, target=target, columns=sides, test=test, valid=valid)
        )
        if fix is not None:
            cleaned_files(plans[0][0], fix)  # refused before the work, not after it
        checks = (check(*each) for each in plans)
    checked = []
    for each in checks:
        checked.append(each)
        if not json:
            print_findings(each.heading, [row(finding) for finding in each.findings])
    cleaned = None if fix is None else clean(cast("CheckedText", checked[0]), fix)
    if json:
        fixed: Any = None
        if cleaned is not None:
            files, log = [str(file) for file in cleaned.files], str(cleaned.log)
            fixed = cleaned._asdict() | {"files": files, "log": log}
        print_json({"corpora": [each.as_json() for each in checked], "fixed": fixed})
    elif cleaned is not None:
        print(
            f"{', '.join(map(str, cleaned.files))}: {cleaned.kept:,} pairs kept, "
            f"{cleaned.changed:,} of them changed; {cleaned.dropped:,} dropped: see {cleaned.log}"
        )
    if any(each.errors for each in checked):
        raise typer.Exit(1)


def _column(text: str | None) -> str | int | None:
    return int(text) if text and text.isdecimal() and len(text) < 10 else text  # or a name


def _text_row(finding: "Finding") -> Row:
    more = ", ..." if finding.count > len(finding.lines) > 0 else ""
    side = f" ({finding.sides})" if finding.sides != "both" else ""
    lines = ", ".join(map(str, finding.lines)) + more
    words = f"{finding.what}{side} [{finding.kind}]"
    return finding.severity, finding.count, lines, words, finding.remedy


def _image_row(finding: "ImageFinding") -> Row:
    more = ["..."] if finding.count > len(finding.examples) else []
    words = f"{finding.what} [{finding.kind}]"
    about = "\n".join([*finding.examples, *more, finding.remedy])
    return finding.severity, finding.count, "", words, about
