"""manyheads check-data."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from manyheads.app.check import Checked, Cleaned
    from manyheads.app.check_images import CheckedImages
    from manyheads.data.image_checks import PictureFinding


def run(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Corpora: the stem of two files, a .tsv, .csv, .jsonl, .parquet or .tmx file, "
            "hub:owner/name; pictures: a folder, .tar, or any table with --images; or one recipe.",
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
    source_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Its name, or its number from 1.")
    ] = None,
    target_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Its name, or its number from 1.")
    ] = None,
    fix: Annotated[
        Path | None,
        typer.Option(metavar="OUT", help="Write the cleaned corpus, and OUT.log.jsonl."),
    ] = None,
    images: Annotated[
        bool, typer.Option("--images", help="These are pictures: a table of paths and labels.")
    ] = False,
    image: Annotated[
        str, typer.Option(metavar="COLUMN", help="Of a table of pictures: paths or pictures.")
    ] = "image",
    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="Of a table of pictures: the labels.")
    ] = "label",
    multi_label: Annotated[
        bool, typer.Option("--multi-label", help="Several labels a picture, separated by ;.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look for damage in parallel text or in pictures: where, and what to do.

    Exit code 1 with errors.
    """
    from manyheads.app.check_images import are_images

    if images or all(map(are_images, paths)):
        given = (source, target, source_column, target_column, fix)
        columns = {"image": image, "label": label, "multi_label": multi_label}
        _check_images(paths, given, columns, test, valid, as_json=json)
    else:
        _check_text(
            paths, source, target, source_column, target_column, test, valid, fix, as_json=json
        )


def _check_images(
    paths: list[str],
    given: tuple[object, ...],
    columns: dict[str, Any],
    test: str | None,
    valid: str | None,
    *,
    as_json: bool,
) -> None:
    from manyheads.app.check import is_recipe
    from manyheads.app.check_images import check_image_recipe, check_images
    from manyheads.cli.show import print_findings, print_json
    from manyheads.errors import UsageError

    if any(each is not None for each in given):
        raise UsageError("Pictures have no --source, --target, their columns, or --fix.")
    if any(map(is_recipe, paths)):
        if len(paths) > 1 or test or valid:
            raise UsageError("A recipe names its own data: give one recipe and no other data.")
        checked = check_image_recipe(paths[0])
    else:
        checked = check_images(paths, **columns, test=test, valid=valid)
    if as_json:
        print_json({"corpora": [_images_as_json(each) for each in checked], "fixed": None})
    else:
        for each in checked:
            heading = f"{each.name}: {len(each.images):,} pictures"
            if each.images.classes:
                heading += f", {len(each.images.classes)} classes"
            print_findings(
                heading,
                [
                    (f.severity, f.count, "", f"{f.what} [{f.kind}]", f"{_examples(f)}\n{f.remedy}")
                    for f in each.findings
                ],
            )
    if any(each.errors for each in checked):
        raise typer.Exit(1)


def _examples(finding: "PictureFinding") -> str:
    more = "\n..." if finding.count > len(finding.examples) else ""
    return "\n".join(finding.examples) + more


def _images_as_json(checked: "CheckedImages") -> dict[str, object]:
    return {
        "name": checked.name,
        "data": checked.images.origin,
        "pictures": len(checked.images),
        "classes": len(checked.images.classes),
        "errors": checked.errors,
        "findings": [asdict(finding) for finding in checked.findings],
    }


def _check_text(
    paths: list[str],
    source: str | None,
    target: str | None,
    source_column: str | None,
    target_column: str | None,
    test: str | None,
    valid: str | None,
    fix: Path | None,
    *,
    as_json: bool,
) -> None:
    from manyheads.app.check import check, clean, cleaned_files, is_recipe, plan, plan_recipe
    from manyheads.cli.show import print_json
    from manyheads.errors import UsageError

    if fix is not None and len(paths) > 1:
        raise UsageError("--fix cleans one corpus at a time: give one PATH.")
    if len(paths) == 1 and is_recipe(paths[0]):
        if test or valid or source or target or source_column or target_column or fix:
            raise UsageError("A recipe names its own data: give none of the other options.")
        plans = plan_recipe(paths[0])
    else:
        columns = (_column(source_column), _column(target_column))
        plans = plan(paths, source=source, target=target, columns=columns, test=test, valid=valid)
    if fix is not None:
        cleaned_files(plans[0][0], fix)  # refused before the work, not after it
    checked = []
    for place, held_out in plans:
        checked.append(check(place, held_out))
        if not as_json:
            _show(checked[-1])
    cleaned = clean(checked[0], fix) if fix is not None else None
    if as_json:
        print_json({"corpora": [_as_json(each) for each in checked], "fixed": _files(cleaned)})
    elif cleaned is not None:
        print(
            f"{', '.join(map(str, cleaned.files))}: {cleaned.kept:,} pairs kept, "
            f"{cleaned.changed:,} of them changed; {cleaned.dropped:,} dropped: see {cleaned.log}"
        )
    if any(each.errors for each in checked):
        raise typer.Exit(1)


def _column(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


def _show(checked: "Checked") -> None:
    from manyheads.cli.show import print_findings

    rows = []
    for finding in checked.findings:
        more = ", ..." if finding.count > len(finding.lines) else ""
        side = f" ({finding.sides})" if finding.sides != "both" else ""
        lines = ", ".join(map(str, finding.lines)) + more
        words = f"{finding.what}{side} [{finding.kind}]"
        rows.append((finding.severity, finding.count, lines, words, finding.remedy))
    print_findings(f"{checked.place.origin}: {len(checked.checker):,} pairs", rows)


def _as_json(checked: "Checked") -> dict[str, object]:
    return {
        "name": checked.place.name,
        "data": checked.place.origin,
        "pairs": len(checked.checker),
        "errors": checked.errors,
        "findings": [asdict(finding) for finding in checked.findings],
    }


def _files(cleaned: "Cleaned | None") -> dict[str, object] | None:
    if cleaned is None:
        return None
    paths = {"files": [str(file) for file in cleaned.files], "log": str(cleaned.log)}
    return cleaned._asdict() | paths
