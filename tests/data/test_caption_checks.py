"""Damage in images with texts: each kind is made, and found where it is."""

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from manyheads.data.checks.caption_checks import (
    ISSUE_TYPES,
    caption_findings,
    language_facts,
    look_at_captions,
)
from manyheads.data.checks.image_checks import ImageFinding
from manyheads.data.images.caption_readers import read_caption_folder, read_caption_tables
from manyheads.data.images.captioned_images import CaptionColumns, CaptionedImages
from manyheads.data.images.image_set import ImageSet, Preprocessing
from tests.data.test_image_checks import photo

Texts = Mapping[str, str | Sequence[str]]  # of an image, by language


def captioned(rows: Mapping[int, Texts]) -> CaptionedImages:
    """Photos by their seed, each with its texts."""
    seeds = list(rows)
    flat = [
        (number, language, text)
        for number, texts in enumerate(rows.values())
        for language, own in texts.items()
        for text in ([own] if isinstance(own, str) else own)
    ]
    images = ImageSet(
        np.zeros(len(seeds), dtype=int),
        [],
        [f"image {seed}" for seed in seeds],
        lambda index: photo(seeds[index] % 1000),
    )
    return CaptionedImages(
        images,
        np.array([number for number, *_ in flat], dtype=int),
        [text for *_, text in flat],
        [language for _, language, _ in flat],
    )


def found(rows: CaptionedImages, **held_out: CaptionedImages) -> dict[str, ImageFinding]:
    others = {split: look_at_captions(each) for split, each in held_out.items()}
    return {each.kind: each for each in caption_findings(look_at_captions(rows), others)}


FINE: dict[int, Texts] = {
    1: {"en": "a red cat on the roof", "ko": "지붕 위의 빨간 고양이"},
    2: {"en": "two dogs in the garden", "ko": "정원에 있는 개 두 마리"},
}


def test_nothing_to_complain_of() -> None:
    """Different images with different texts, also in the test data."""
    test = captioned({3: {"en": "a ship at sea", "ko": "바다 위의 배"}})
    assert found(captioned(FINE), test=test) == {}


@pytest.mark.parametrize(
    ("kind", "language", "text"),
    [
        ("unexpected-script", "de", "고양이 한 마리"),
        ("unexpected-script", "ko", "кошка на крыше"),
        ("unexpected-language", "de", "the cat is on the roof of our house"),
        ("unexpected-language", "en", "die Katze ist auf dem Dach"),
        ("file-name", "en", "IMG_20240131.JPG"),
        ("file-name", "en", "DSC01234"),
        ("file-name", "en", "cat-on-roof.webp"),
        ("long-text", "en", "cat " * 60),
        ("short-text", "en", "x"),
        ("mojibake", "de", "Ã¼ber dem groÃŸen Dach"),
        ("control-characters", "en", "a\x00cat"),
        ("html-entities", "en", "cat &amp; dog"),
        ("line-break", "en", "a cat\na dog"),
        ("only-url", "en", "https://example.org/cat"),
    ],
)
def test_single_texts(kind: str, language: str, text: str) -> None:
    """The image, the text and its language are named."""
    usual = {seed: {language: f"{word} x{seed}"} for seed, word in enumerate(["cat", "dog"], 10)}
    result = found(captioned({**usual, 5: {language: text}}))
    assert kind in result
    example = result[kind].examples[0]
    assert example.startswith("image 5: ")
    assert example.endswith(f" ({language})")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ko", "CD"),  # Latin words are usual in every script
        ("ko", "VIP 라운지"),
        ("ja", "木"),
        ("ja", "猫"),  # one character may be a word
        ("de", "Café, ñandú und Œuvre"),
        ("en", "file.txt, a cat"),
        ("xx", "что угодно"),  # a language without a known script
        ("de", "in London"),
    ],
)
def test_texts_that_are_as_they_should_be(language: str, text: str) -> None:
    """Of short texts a language is not guessed."""
    assert found(captioned({1: {language: text}, 2: {language: f"{text} 2"}})) == {}


def test_texts_that_several_images_have() -> None:
    """The share, and what a search can reach: of five texts three are those of one image."""
    rows = captioned(
        {
            1: {"en": ["arrow", "left"]},
            2: {"en": ["Arrow ", "right"]},
            3: {"en": ["arrow"], "ko": "화살표"},
        }
    )
    finding = found(rows)["shared-text"]
    assert (finding.severity, finding.count) == ("note", 3)
    assert finding.examples == ("'arrow' (en, 3 images)",)
    assert finding.what.endswith(": en 60.0% (recall@1 up to 60.0%)")  # 2 + 3 thirds of 5
    facts = language_facts(look_at_captions(rows))
    assert list(facts) == ["en", "ko"]
    assert (facts["en"].texts, facts["en"].images) == (5, 3)
    assert facts["en"].recall_at_1 == pytest.approx(0.6)
    assert (facts["ko"].shared, facts["ko"].recall_at_1) == (0, 1)


def test_a_text_of_copies_is_not_shared() -> None:
    """Either of two equal images is the right one."""
    result = found(captioned({1: {"en": "a cat"}, 1001: {"en": "a cat"}}))
    assert set(result) == {"duplicate"}
    assert result["duplicate"].examples == ("image 1001 = image 1",)


def test_overlaps() -> None:
    """Equal images are errors; all of several texts are looked at; one of them is common."""
    train = captioned(
        {
            1: {"en": ["a cat", "an animal"]},
            2: {"en": ["a dog", "an animal"]},
            3: {"en": "a ship"},
            4: {"en": "the sea"},
        }
    )
    test = captioned(
        {
            1004: {"en": "waves"},  # the image of 4
            5: {"en": ["AN animal", "a cat"]},  # the texts of 1
            6: {"en": "a ship"},  # one text, of 3
            7: {"en": "a house", "ko": "집"},
        }
    )
    result = found(train, test=test)
    assert set(result) - {"shared-text"} == {
        "test-overlap",
        "test-same-texts",
        "test-shared-text",
        "unknown-language",
    }
    assert result["test-overlap"].examples == ("image 4 = image 1004",)
    assert result["test-same-texts"].examples == ("image 1 ~ image 5",)
    assert result["test-same-texts"].severity == "warning"
    shared = result["test-shared-text"]
    assert shared.what.endswith(": en 60.0%")  # three of five
    assert shared.examples == ("'AN animal' (en)", "'a cat' (en)", "'a ship' (en)")
    assert result["unknown-language"].examples == ("ko (test)",)
    other = {name.replace("test", "valid") for name in result}
    assert set(found(train, valid=test)) == other


def test_texts_of_an_image() -> None:
    """Twice in a language; not in all languages."""
    result = found(captioned({1: {"en": ["cat", "Cat", "pet"], "de": "Katze"}, 2: {"en": "dog"}}))
    assert set(result) == {"repeated-text", "language-gap"}
    assert result["repeated-text"].examples == ("image 1: 'cat' (en)",)
    assert result["language-gap"].examples == ("image 2 (de)",)


def test_images_that_are_not_there(tmp_path: Path) -> None:
    """Apart from those that are damaged, or that the model cannot read."""
    photo(1).save(tmp_path / "1.png")
    (tmp_path / "2.png").write_bytes(b"GIF8")
    np.save(tmp_path / "3.npy", np.zeros((9, 9, 5), dtype=np.uint8))
    names = ["1.png", "2.png", "3.npy", "gone.png"]
    rows = "".join(f"{name},text {name[0]}\n" for name in names)
    (tmp_path / "a.csv").write_text(f"image,caption\n{rows}")
    captions = read_caption_tables([tmp_path / "a.csv"], CaptionColumns())
    model = Preprocessing(height=8, width=8)
    looked = look_at_captions(captions, model=model)
    result = {each.kind: each for each in caption_findings(looked)}
    assert result["missing-image"].examples == (
        f"{tmp_path / 'gone.png'} (No such file or directory)",
    )
    assert result["unreadable"].count == 2


def test_what_readers_leave_out(tmp_path: Path) -> None:
    """The problems of a folder, and files that have nothing to do with it."""
    for seed in (1, 2):
        photo(seed).save(tmp_path / f"{seed}.png")
    (tmp_path / "1.txt").write_text("a cat")
    (tmp_path / "3.txt").write_text("a dog")
    (tmp_path / "README.txt").write_text("about")
    looked = look_at_captions(read_caption_folder(tmp_path, CaptionColumns()))
    result = {each.kind: each for each in caption_findings(looked)}
    assert set(result) == {"no-text", "no-image", "other-files"}
    assert result["no-text"].examples == (f"{tmp_path / '2.png'} (an image without a text)",)
    assert result["no-image"].severity == "error"
    assert result["other-files"].count == 2


def test_every_kind_has_a_test() -> None:
    """Of those in the table; what readers report is made where readers are tested."""
    table = files("manyheads.data.checks").joinpath("caption_issues.toml").read_text("utf-8")
    own = Path(__file__).read_text("utf-8")
    readers = Path(__file__).with_name("test_caption_readers.py").read_text("utf-8")
    assert [
        kind
        for kind in tomllib.loads(table)
        if f'"{kind}"' not in own + readers and not kind.startswith("valid-")
    ] == []
    assert all("{" not in issue.what + issue.remedy for issue in ISSUE_TYPES.values())
