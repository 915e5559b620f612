"""Check images with texts: open every image once, read every text; findings list names."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from manyheads.data.checks import image_checks, issue_types
from manyheads.data.checks.held_out_images import by_language, text_keys
from manyheads.data.checks.image_checks import FEW, ImageFinding, Seen, in_order
from manyheads.data.checks.issue_detectors import fix_mojibake, is_foreign, text_detectors
from manyheads.data.checks.leakage import plain
from manyheads.data.images.captioned_images import CaptionedImages, describe
from manyheads.data.images.image_set import Preprocessing
from manyheads.data.text.languages import count_words, languages_with_words, script, typical_words

LONG = 200  # characters
TIMES = 8  # the median of a language
FOREIGN_WORDS = 3  # of another language, and none of its own
SHOWN = 60  # characters of a text
IDEOGRAPHS = "\u2e80"  # from here on one character may be a word

ISSUE_TYPES = (
    issue_types.ISSUE_TYPES
    | image_checks.ISSUE_TYPES
    | issue_types.issue_types("caption_issues.toml", long=LONG, times=TIMES)
)

_FILE_NAME = re.compile(
    r"\S+\.(?:jpe?g|png|gif|webp|bmp|tiff?|heic|avif)|(?:IMG|DSCN?|PXL|MVIMG)[-_]?\d{3,}\S*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class LanguageFacts:
    """Counts of the texts in a language."""

    texts: int
    images: int
    shared: float  # share of the texts that several different images have
    # The most that can be expected of a search by these texts, if one image counts as right.
    recall_at_1: float


@dataclass
class SeenCaptions:
    """The fingerprints and issues of the images of a set, and the issues of its texts."""

    captions: CaptionedImages
    seen: Seen
    issues: dict[str, list[str]] = field(default_factory=dict)  # names by kind of issue


def look_at_captions(captions: CaptionedImages, model: Preprocessing | None = None) -> SeenCaptions:
    """Open every image of a set once, as `image_checks.look` does, and read every text."""
    result = SeenCaptions(captions, image_checks.look(captions.images, model))
    for problem in captions.problems:
        result.issues.setdefault(problem.kind, []).append(describe(problem))
    for kind, names in _text_issues(captions).items():
        result.issues.setdefault(kind, []).extend(names)
    return result


def caption_findings(
    looked: SeenCaptions, held_out: Mapping[str, SeenCaptions] | None = None
) -> list[ImageFinding]:
    """Return the issues of a set, the most severe and most frequent first.

    `held_out` are the "test" and "valid" sets, which it must not overlap with.
    """
    others = held_out or {}
    seen = {split: other.seen for split, other in others.items()}
    found = image_checks.image_issues(looked.seen, seen)
    found |= looked.issues
    known = set(looked.captions.languages)
    for split, other in others.items():
        found[f"{split}-same-texts"] = _same_texts(looked.captions, other.captions)
        unknown = sorted(set(other.captions.languages) - known)
        found.setdefault("unknown-language", []).extend(f"{each} ({split})" for each in unknown)
    findings = [*image_checks.listed(found, ISSUE_TYPES), _shared(looked)]
    findings += [_known(split, looked.captions, o.captions) for split, o in others.items()]
    return in_order(each for each in findings if each.count)


def language_facts(looked: SeenCaptions) -> dict[str, LanguageFacts]:
    """Count the texts of each language, in alphabetical order."""
    captions, counts, keys = looked.captions, _images_of_texts(looked), _keys(looked.captions)
    result = {}
    for language in sorted(set(captions.languages)):
        own = [n for n, each in enumerate(captions.languages) if each == language]
        images = [counts[keys[n]] for n in own]
        result[language] = LanguageFacts(
            texts=len(own),
            images=len({int(captions.owners[n]) for n in own}),
            shared=sum(count > 1 for count in images) / len(own),
            recall_at_1=sum(1 / count for count in images) / len(own),
        )
    return result


# --- Texts that several images have -------------------------------------------------------------


def _keys(captions: CaptionedImages) -> list[tuple[str, str]]:
    return list(zip(captions.languages, map(plain, captions.texts), strict=True))


def _images_of_texts(looked: SeenCaptions) -> dict[tuple[str, str], int]:
    """Count the images of each text that differ in their pixels."""
    seen = looked.seen
    digests: dict[int, object] = dict(zip(seen.readable, seen.digests, strict=True))
    images: defaultdict[tuple[str, str], set[object]] = defaultdict(set)
    for key, owner in zip(_keys(looked.captions), looked.captions.owners.tolist(), strict=True):
        images[key].add(digests.get(owner, owner))
    return {key: len(found) for key, found in images.items()}


def _shared(looked: SeenCaptions) -> ImageFinding:
    """Find texts that do not tell which image is meant."""
    counts = _images_of_texts(looked)
    shared = sorted((key for key, n in counts.items() if n > 1), key=lambda key: -counts[key])
    facts = language_facts(looked)
    shares = ", ".join(
        f"{each} {fact.shared:.1%} (recall@1 up to {fact.recall_at_1:.1%})"
        for each, fact in facts.items()
        if fact.shared
    )
    names = [f"{key[1]!r:.{SHOWN}} ({key[0]}, {counts[key]:,} images)" for key in shared]
    affected = sum(counts[key] > 1 for key in _keys(looked.captions))
    return _finding("shared-text", shares, affected, names)


def _known(split: str, train: CaptionedImages, held: CaptionedImages) -> ImageFinding:
    """Find texts of held-out data that are in the training data."""
    known, total = set(_keys(train)), Counter(held.languages)
    names: defaultdict[str, list[str]] = defaultdict(list)
    for key, own in zip(_keys(held), held.texts, strict=True):
        if key in known:
            names[key[0]].append(f"{own!r:.{SHOWN}} ({key[0]})")
    shares = ", ".join(f"{each} {len(names[each]) / total[each]:.1%}" for each in sorted(names))
    flat = [name for each in names.values() for name in each]
    return _finding(f"{split}-shared-text", shares, len(flat), list(dict.fromkeys(flat)))


def _finding(kind: str, shares: str, count: int, names: Sequence[str]) -> ImageFinding:
    severity, what, remedy, _ = ISSUE_TYPES[kind]
    return ImageFinding(kind, severity, f"{what}: {shares}", remedy, count, tuple(names[:FEW]))


def _same_texts(train: CaptionedImages, held: CaptionedImages) -> list[str]:
    """Find images that have all texts of a held-out image, in a language where it has several."""
    several: dict[str, int] = {}
    for index in range(len(held)):
        texts = by_language(held, index)
        for key, own in zip(text_keys(held, index), texts.values(), strict=True):
            if len(set(map(plain, own))) > 1:
                several.setdefault(key, index)
    found = {}
    for index in range(len(train)):
        for key in text_keys(train, index):
            if key in several:
                found[index] = f"{train.images.names[index]} ~ {held.images.names[several[key]]}"
    return list(found.values())


# --- Single texts -------------------------------------------------------------------------------


def _text_issues(captions: CaptionedImages) -> dict[str, list[str]]:
    """Return the texts that have issues, each with the name of its image."""
    issues: defaultdict[str, list[str]] = defaultdict(list)
    detectors = {each: _detectors(each, captions) for each in sorted(set(captions.languages))}
    rows = zip(captions.owners.tolist(), captions.texts, captions.languages, strict=True)
    for owner, text, language in rows:
        for kind, detect in detectors[language].items():
            if detect(text):
                name = captions.images.names[owner]
                issues[kind].append(f"{name}: {text!r:.{SHOWN}} ({language})")
    every = set(captions.languages)
    for index, name in enumerate(captions.images.names):
        texts = by_language(captions, index)
        if gap := sorted(every.difference(texts)):
            issues["language-gap"].append(f"{name} ({', '.join(gap)})")
        for language, own in texts.items():
            times = [plain(text) for text in own]
            issues["repeated-text"] += [
                f"{name}: {text!r:.{SHOWN}} ({language})"
                for text in dict.fromkeys(times)
                if times.count(text) > 1
            ]
    return issues


def _detectors(language: str, captions: CaptionedImages) -> dict[str, Callable[[str], object]]:
    """Return what finds each issue of a text in a language."""
    anywhere, beyond_ascii = text_detectors(language)
    rows = zip(captions.languages, captions.texts, strict=True)
    own = [len(text) for each, text in rows if each == language]
    longest = max(LONG, TIMES * median(own))
    written = script(language)
    pairs = [
        (typical_words(language, other), typical_words(other, language))
        for other in languages_with_words()
        if other != language
    ]

    def is_another(text: str) -> bool:
        return text.count(" ") >= FOREIGN_WORDS and any(
            not count_words(text, mine) and count_words(text, theirs) >= FOREIGN_WORDS
            for mine, theirs in pairs
            if mine and theirs
        )

    return {
        **anywhere,
        **beyond_ascii,
        "mojibake": lambda text: not text.isascii() and fix_mojibake(text) is not None,
        "unexpected-script": lambda text: written is not None and is_foreign(text, written),
        "unexpected-language": is_another,
        "file-name": _FILE_NAME.fullmatch,
        "long-text": lambda text: len(text) > longest,
        "short-text": lambda text: len(text.strip()) == 1 and text.strip() < IDEOGRAPHS,
    }
