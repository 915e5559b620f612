"""Record what the shipped models answer: the golden file that tests compare with.

Run it before a change that should not change answers; `--check` compares bitwise, on the machine
that recorded (tests/project/test_golden.py compares on any machine, within rounding):

    python scripts/golden.py           # writes tests/golden/shipped.json
    python scripts/golden.py --check   # exits with 1 where any answer or score differs
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image

import manyheads
from manyheads.data.images.digits import read_digits

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "shipped.json"
TEXTS = {
    "date-en-ko": [
        "Friday, 20 November 2026",
        "Nov 20 – 22, 2026",
        "12:30 a.m. on November 20, 2026",
        "from November 20, 2026 to January 2, 2027",
        "11/20/26",
        "Hello world",
    ],
    "enko-en-ko": [
        "Return a copy of the list.",
        "The function returns the length of the list.",
        "I decided to name my cat Epoch.",
        "Tom went home.",
    ],
    "enko-ko-en": [
        "목록의 복사본을 반환합니다.",
        "함수는 리스트의 길이를 반환합니다.",
        "나는 학교에 갑니다.",
    ],
    "en-de": [
        "Can you recommend a good restaurant around here?",
        "I left my suitcase in the taxi.",
        "A man is riding a bicycle.",
    ],
    "de-en": [
        "Können Sie hier in der Nähe ein gutes Restaurant empfehlen?",
        "Ich habe meinen Koffer im Taxi vergessen.",
        "Ein Mann fährt Fahrrad.",
    ],
    "en-fr": [
        "Can you recommend a good restaurant around here?",
        "I left my suitcase in the taxi.",
        "It is raining today.",
    ],
    "en-ko": [
        "Can you recommend a good restaurant around here?",
        "I left my suitcase in the taxi.",
        "Return a copy of the list.",
    ],
    "ko-en": [
        "이 근처에 좋은 식당이 있어요?",
        "택시에 가방을 두고 내렸어요.",
        "목록의 복사본을 반환합니다.",
    ],
    "multi30k-en-de-distil": [
        "Two young men play the guitar.",
        "A woman in a red jacket crosses a busy street.",
        "Three dogs run through deep snow.",
    ],
    "multi30k-en-de": [
        "A man is riding a bicycle.",
        "Two dogs are playing in the snow.",
        "A group of people standing in front of an old building, waiting for a bus.",
        "A girl in a red dress",
    ],
    "korean-spacing-lstm": [
        "이함수는리스트의길이를반환합니다.",
        "아버지가방에들어가신다",
    ],
}


def _colours() -> list[Image.Image]:
    """Draw pictures that need no file: gradients, one of them wide."""
    sizes = ((32, 32), (48, 40), (20, 64))
    return [
        Image.merge(
            "RGB",
            [
                Image.linear_gradient("L").resize(size),
                Image.radial_gradient("L").resize(size),
                Image.linear_gradient("L").rotate(90).resize(size),
            ],
        )
        for size in sizes
    ]


def _digest(x: torch.Tensor) -> str:
    return hashlib.sha256(x.detach().contiguous().numpy().tobytes()).hexdigest()


def _translations(name: str, texts: list[str]) -> dict[str, Any]:
    translator: Any = manyheads.load(name)
    return {
        f"beams {beams}": [
            [{"text": each.text, "score": each.score} for each in found]
            for found in translator.translate(texts, beams=beams, n_best=min(beams, 2))
        ]
        for beams in (1, 4)
    }


def _classes(name: str, images: Sequence[Any]) -> dict[str, Any]:
    classifier: Any = manyheads.load(name)
    pixels = torch.stack([classifier.pixels(each) for each in images]).float() / 255
    with torch.inference_mode():
        logits = classifier.model(pixels)
    answers = classifier.classify(images, top=3)
    return {
        "classes": [[list(each) for each in found] for found in answers],
        "logits": logits.tolist(),
        "sha256 of logits": _digest(logits),
    }


def _tags(name: str, texts: list[str]) -> dict[str, Any]:
    spacer: Any = manyheads.load(name)
    with torch.inference_mode():
        ids = torch.arange(4, 24).view(2, 10)
        logits = spacer.model(ids)
    return {"texts": spacer(texts), "logits": logits.tolist(), "sha256 of logits": _digest(logits)}


def record() -> dict[str, Any]:
    """Ask every shipped model, on one thread."""
    torch.set_num_threads(1)
    answers: dict[str, Any] = {}
    for name, texts in TEXTS.items():
        make = _tags if name == "korean-spacing-lstm" else _translations
        answers[name] = make(name, texts)
    digits = read_digits()
    answers["digits"] = _classes("digits", [digits.read(index) for index in range(0, 1797, 150)])
    answers["cifar10-cct-2-3x2"] = _classes("cifar10-cct-2-3x2", _colours())
    return answers


if __name__ == "__main__":
    # Written and read again, so that both sides have been through JSON; floats survive it exactly.
    found = json.loads(json.dumps(record(), ensure_ascii=False))
    if "--check" not in sys.argv:
        GOLDEN.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        sys.exit()
    before = json.loads(GOLDEN.read_text(encoding="utf-8"))
    differ = [name for name in before if before[name] != found.get(name)]
    print(
        f"differ: {', '.join(differ)}"
        if differ
        else f"{len(before)} models answer bitwise as before"
    )
    sys.exit(bool(differ))
