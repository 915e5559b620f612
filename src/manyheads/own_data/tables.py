"""Sentence pairs, labelled sentences and plain text in files of any common form: cleaned, split."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from manyheads.data.checks.clean import Cleaner, repaired
from manyheads.data.checks.issue_detectors import PairIssueDetector
from manyheads.data.checks.issue_types import ISSUE_TYPES
from manyheads.data.checks.text_checks import Checker
from manyheads.data.documents.glossary import Glossary
from manyheads.data.text.exclusion import hold_out, near_key
from manyheads.data.text.formats import Pair
from manyheads.data.text.languages import is_language_code
from manyheads.errors import DataError, UsageError
from manyheads.own_data.columns import LOOKED_AT, Column, Roles, find_roles
from manyheads.own_data.continued import Base, General, general_pairs, open_base
from manyheads.own_data.loose_table import Table, read_table
from manyheads.own_data.prepared import EXAMPLES, Finding, Options, Prepared
from manyheads.own_data.text_recipe import Texts, recipe_for

LEAST = 20  # examples, below which nothing can be learned and measured
SHARE, FEWEST, MOST = 0.05, 10, 500  # of each held-out part
SURE = 2.0  # log odds of each side from which a pair is held to be swapped
SEED = 1


class Notes:
    """Counts findings, with a few examples of each."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.examples: dict[tuple[str, str], list[str]] = {}

    def add(self, kind: str, done: str, example: str) -> None:
        """Note one occurrence."""
        self.counts[kind, done] += 1
        shown = self.examples.setdefault((kind, done), [])
        if len(shown) < EXAMPLES:
            shown.append(example)

    def findings(self) -> list[Finding]:
        """Return the findings, the most frequent first."""
        return [
            Finding(kind, count, tuple(self.examples[kind, done]), done)
            for (kind, done), count in self.counts.most_common()
        ]


def prepare_table(path: Path, out: Path, options: Options) -> Prepared:
    """Read, clean and split a table of texts, and write a recipe for it.

    Raises:
        DataError: too few examples are left.
        UsageError: no such column.
    """
    glossary = Glossary.read(options.glossary) if options.glossary else None
    base = open_base(options.start) if options.start else None
    languages = base.languages if base else ()
    named = [each.partition("=")[0] for each in options.columns]
    table = read_table(path, named or languages)
    roles = find_roles(table, options.columns, languages)
    if base is not None:
        roles = _of_base(roles, base)
    if table.width == 1:
        halves = [find_roles(table._replace(rows=table.rows[n::2]), ()) for n in (0, 1)]
        one, other = (half.source.language for half in halves)
        if one and other and one != other:
            raise DataError(
                f"{path}: its lines are {one} and {other} by turns. Put each pair on one line: "
                f"`grep . {path.name} | paste - - > pairs.tsv`."
            )
    notes = Notes()
    rows = list(_rows(table, roles, notes))
    if roles.target is not None:
        rows, *both = _turned(rows, roles.source, roles.target, notes)
        roles = Roles(*both)
        rows = list(_unswapped(rows, notes))
        kept = _clean_pairs(rows, notes, *(column.language for column in both))
    else:
        kept = _clean_texts(rows, roles.source.language, notes)
    if len(kept) < LEAST:
        left = "" if len(kept) == len(table.rows) else f" of {len(table.rows):,} rows"
        lost = ", ".join(f"{each.count:,} {each.kind}" for each in notes.findings()[:4])
        raise DataError(
            f"{path}: {len(kept)} examples are left{left}{f' ({lost})' if lost else ''}; {LEAST} "
            "are needed to learn from some and measure on others. Give more, or see what was read "
            "with `columns`."
        )
    groups = Counter(near_key(pair.source) for pair in kept)
    for pair in kept:
        if groups[near_key(pair.source)] > 1:
            done = "kept, all on one side of the split: their sources differ in case or marks only"
            notes.add("near-duplicate", done, f"line {pair.line}: {pair.source}")
    parts = _split(kept)
    used = [roles.source, *filter(None, (roles.target, roles.label))]
    seen = [
        f"{path}: {len(table.rows):,} rows, {table.form}; "
        + " and ".join(f"{each.name} ({each.language or 'unknown language'})" for each in used)
        + (f" of {table.width} columns" if table.width > len(used) else "")
    ]
    if roles.target is not None and base is None:
        other = f"{roles.target.number + 1},{roles.source.number + 1}"
        seen.append(f"from {roles.source.name} to {roles.target.name}; `columns={other}` turns it")
    source, target = roles.source.language or "source", "label" if roles.label else None
    if roles.target is not None:
        target = roles.target.language or "target"
    texts = Texts(path, parts, source, target, labelled=roles.label is not None)
    if glossary is not None:
        _check_terms(glossary, parts["train"], notes)
    if base is not None:
        held = [pair.source for name in ("val", "test") for pair in parts[name]]
        general = general_pairs(base, len(parts["train"]), held, SEED)
        parts |= {"general": general.train, "general-val": general.valid} if general.train else {}
        seen.append(_mixed(base, general))
    recipe, files, expect = recipe_for(texts, out, options, base)
    findings = [*table.findings, *notes.findings()]
    return Prepared(seen=seen, findings=findings, recipe=recipe, files=files, expect=expect)


def _of_base(roles: Roles, base: Base) -> Roles:
    """Give the columns the languages of the model that is continued.

    Raises:
        UsageError: they are in other languages, or are no pairs.
    """
    if roles.target is None:
        raise UsageError(
            f"{base.name} is a translator, and the table has no pairs of texts: name both columns "
            "with `columns`, or leave `base_model` out."
        )
    both = list(zip((roles.source, roles.target), base.languages, strict=True))
    for column, language in both:
        if column.language not in (None, language) and is_language_code(language):
            raise UsageError(
                f"{base.name} translates {' to '.join(base.languages)}, but {column.name} seems to "
                f"be {column.language}: continue another model, or say which columns are which, "
                f"with `columns={base.languages[0]}=1,{base.languages[1]}=2`."
            )
    return Roles(*(column._replace(language=language) for column, language in both))


def _mixed(base: Base, general: General) -> str:
    if not general.train:
        return (
            f"nothing general is mixed in, as {base.name}'s own data cannot be read here "
            f"({general.why_not}): hence a low learning rate. It may forget other sentences."
        )
    return (
        f"{len(general.train):,} pairs that {base.name} learned from are mixed in, and "
        f"{len(general.valid):,} of its validation pairs are scored too: it should forget nothing"
    )


def _check_terms(glossary: Glossary, pairs: Sequence[Pair], notes: Notes) -> None:
    """Look for terms whose translations differ from the glossary, and for terms without a pair."""
    met = set()
    for pair in pairs:
        for item in glossary.find(pair.source)[0]:
            met.add(item.text)
            if item.text.casefold() not in pair.target.casefold():
                shown = f"line {pair.line}: {pair.source} | {pair.target}"
                notes.add("glossary", f"kept, but the glossary has {item.text!r}", shown)
    for entry in glossary.entries.values():
        if entry.target not in met:
            notes.add("glossary", "terms that no pair has: nothing is learned", entry.source)


def _rows(table: Table, roles: Roles, notes: Notes) -> Iterable[Pair]:
    """Yield the two cells of each row; of plain text, the second is empty."""
    second = roles.target or roles.label
    numbers = [roles.source.number, *([second.number] if second else [])]
    widths = Counter(len(cells) for _, cells in table.rows)
    width = len(table.header) or max(widths, key=lambda each: widths[each], default=0)
    for line, cells in table.rows:
        shown = f"line {line}: {' | '.join(cells)}"
        stripped = [cell.strip() for cell in cells]
        if table.header and stripped == table.header:
            notes.add("header-as-data", "dropped: the header again", shown)
        elif len(cells) <= max(numbers):
            notes.add("missing-column", "dropped: a column is missing", shown)
        elif len(cells) > width:
            notes.add("extra-column", f"dropped: {len(cells)} cells in place of {width}", shown)
        elif not all(stripped[number] for number in numbers):
            notes.add("empty-side", "dropped: a cell is empty", shown)
        else:
            source, *target = (cells[number] for number in numbers)
            yield Pair(line, source, target[0].strip() if target else "")


def _turned(
    pairs: list[Pair], source: Column, target: Column, notes: Notes
) -> tuple[list[Pair], Column, Column]:
    """Exchange the columns if most rows have the language of the other one."""
    detector = PairIssueDetector(source.language, target.language)
    if not detector.most_swapped(pairs[:: max(1, len(pairs) // LOOKED_AT)]):
        return pairs, source, target
    done = f"changed: all, as most rows have {source.language} in {target.name!r}"
    for pair in pairs:
        notes.add("swapped-sides", done, f"line {pair.line}: {pair.source} | {pair.target}")
    turned = [Pair(pair.line, pair.target, pair.source) for pair in pairs]
    first = target._replace(language=source.language)
    return turned, first, source._replace(language=target.language)


def _unswapped(pairs: Sequence[Pair], notes: Notes) -> Iterator[Pair]:
    """Swap the sides of pairs whose words are those of the other side in most pairs.

    Each word speaks for a side by the logarithm of how much more often it is there. Needs no
    knowledge of the languages.
    """
    sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
    counts = [Counter(word for text in side for word in _words(text)) for side in sides]
    total = [sum(count.values()) + 1 for count in counts]

    def speaks(text: str) -> float:
        odds = ((counts[0][word] + 0.5, counts[1][word] + 0.5) for word in _words(text))
        return sum(math.log(first / second * total[1] / total[0]) for first, second in odds)

    for pair in pairs:
        if speaks(pair.source) < -SURE and speaks(pair.target) > SURE:
            shown = f"line {pair.line}: {pair.source} | {pair.target}"
            notes.add("swapped-sides", "changed: source and target are swapped", shown)
            pair = Pair(pair.line, pair.target, pair.source)
        yield pair


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.casefold())


def _clean_pairs(pairs: Sequence[Pair], notes: Notes, *languages: str | None) -> list[Pair]:
    source, target = languages
    checker = Checker(source, target)
    for pair in pairs:
        checker.add(pair)
    cleaner = Cleaner(checker, source, target)
    kept = []
    for pair in pairs:
        if (clean := cleaner(pair)) is not None:
            kept.append(clean)
        for entry in cleaner.log:
            text = entry.text.replace("\t", " | ")
            becomes = f" -> {entry.becomes.replace(chr(9), ' | ')}" if entry.becomes else ""
            for kind in dict.fromkeys(entry.reason.split(", ")):
                done = f"{entry.action}: {ISSUE_TYPES[kind].what}"
                notes.add(kind, done, f"line {entry.line}: {text}{becomes}")
        cleaner.log.clear()
    for finding in checker.findings():
        if not ISSUE_TYPES[finding.kind].fix:
            for line in finding.lines:
                notes.add(finding.kind, f"kept: {finding.what}", f"line {line}")
            key = finding.kind, f"kept: {finding.what}"
            notes.counts[key] = finding.count
    return kept


def _clean_texts(pairs: Sequence[Pair], language: str | None, notes: Notes) -> list[Pair]:
    """Repair the texts of labelled sentences or plain text, and drop duplicates."""
    kept, known = [], dict[str, str]()
    for line, text, label in pairs:
        clean = repaired(text, language)
        if clean != text.strip():
            notes.add("repaired", "changed: entities, marks or spaces", f"line {line}: {text}")
        if not clean:
            notes.add("empty-side", "dropped: nothing is left", f"line {line}: {text}")
        elif clean not in known:
            known[clean] = label
            kept.append(Pair(line, clean, label))
        elif known[clean] == label:
            notes.add("duplicate-pair", "dropped: a duplicate", f"line {line}: {clean}")
        else:
            both = f"line {line}: {clean} | {label}, before: {known[clean]}"
            notes.add("other-label", "dropped: the same text has another label", both)
    return kept


def _split(pairs: Sequence[Pair]) -> dict[str, Sequence[Pair]]:
    """Divide into train, val and test, near-duplicate sources together."""
    held = min(MOST, max(FEWEST // 2, round(SHARE * len(pairs))))
    train, both = hold_out([pair.source for pair in pairs], 2 * held, SEED)
    val, test = hold_out([pairs[index].source for index in both], held, SEED)
    return {
        "train": [pairs[index] for index in train],
        "val": [pairs[both[index]] for index in val],
        "test": [pairs[both[index]] for index in test],
    }
