"""Single lines as signs, buttons, receipts and notes have them, beside tesseract in the same run.

    python -m benchmarks.reading_signs
    python -m benchmarks.reading_signs --model runs/mine --fonts

Character errors in percent. Fonts are those that the recipe read-ko holds out: two ordinary
families, ten of signs and posters, five of handwriting, none of them trained on. Texts are of
enko's test split, Korean where a font has Hangul and else English; codes and prices are listed
here. Nothing may be chosen by what is measured here. tesseract 5 is `apt install tesseract-ocr
tesseract-ocr-kor`; without it its column is empty.
"""

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFilter, ImageFont

from manyheads import load
from manyheads.data.synthetic.text_lines import Font
from manyheads.recipe_data.pair_splits import corpus_split
from manyheads.streams import generator
from manyheads.tasks.read.predictor import Reader
from manyheads.tasks.read.task import edit_distance, plain

SHARE = Path("/usr/share/fonts")
ORDINARY = (
    "truetype/nanum/NanumBarunGothic.ttf",
    "truetype/nanum/NanumBarunGothicBold.ttf",
    "truetype/nanum/NanumSquareRoundR.ttf",
    "truetype/nanum/NanumSquareRoundB.ttf",
)
DISPLAY = (
    "truetype/alee/Bandal.ttf",
    "truetype/woowa-bm/BMDOHYEON_ttf.ttf",
    "truetype/woowa-bm/BMJUA_ttf.ttf",
    "truetype/unfonts-extra/UnJamoNovel.ttf",
    "truetype/baekmuk/hline.ttf",
    "opentype/cherrybomb/CherryBomb-Regular.otf",
    "truetype/leckerli-one/LeckerliOne-Regular.ttf",
    "opentype/lobster/lobster.otf",
    "opentype/radisnoir/RadisSans-medium.otf",
    "truetype/rocknroll/RocknRollOne-Regular.ttf",
)
HANDWRITING = (
    "truetype/nanum/NanumPen.ttf",
    "truetype/unfonts-extra/UnPilgia.ttf",
    "truetype/woowa-bm/BMYEONSUNG_ttf.ttf",
    "opentype/dancingscript/DancingScript-Regular.otf",
    "truetype/dustin/Domestic_Manners.ttf",
)
CODES = """
48,900원|아메리카노 4,500원|합계 127,350원|$4.25|USD 1,299.00|2+1 행사|30% OFF|-15%|3,000 P 적립
1인분 12,000|WIFI: cafe_2F / pw: h0ney!47|A-1024|B2-117|KE 902|OZ0361|좌석 23F|게이트 14
탑승 18:45|ICN-LHR|PNR: X7QK2M|010-2938-4471|02-774-0135|+82 31-8005-6620|1588-3000
TEL 051)462-7788|서울 12가 3456|103동 1502호|B1층 주차장 C-17|2024-11-05|2026.03.18 (수)|11/27 FRI
09:30 ~ 18:00|24시간 영업|유효기간 26.12.31|오전 7시 20분|D-12|S/N 5CG7291QXJ|Model: LX-300+II
v2.14.3-rc1|IP 192.168.0.254|0x7F3A|#E8F0A2|ISBN 979-11-6224-3|LOT 8842BK|user.name@mail.kr
https://go.to/x9Zk3|www.sijang24.co.kr|order_id=88213076|500 ml|1.5 kg (3,980/kg)|AAA 1.5V x 4
No. 0047|Q7|Room 305|7-Eleven 24h|3x5=15|Page 12/48|MAX 120 km/h|-18℃ 이하 보관
"""
SIZES = (20, 24, 28, 34, 42)
LINES = 60  # of each kind, and of each font of the two kinds of fonts


class Case(NamedTuple):
    """An image, and what is printed on it."""

    image: Image.Image
    text: str


def drawn(text: str, path: Path, size: int, ink: int = 25, paper: int = 240) -> Image.Image:
    """Print a text with a margin of half its size."""
    font = ImageFont.truetype(path, size)
    left, top, right, bottom = font.getbbox(text)
    gap = size // 2
    image = Image.new("L", (round(right - left) + 2 * gap, round(bottom - top) + 2 * gap), paper)
    ImageDraw.Draw(image).text((gap - left, gap - top), text, fill=ink, font=font)
    return image


def framed(text: str, path: Path, number: int, *, filled: bool) -> Image.Image:
    """Put a line into a frame, or onto a button, of one of several shapes."""
    size = SIZES[number % len(SIZES)]
    paper, outside = (40 + 15 * (number % 5), 235) if filled else (240, 240)
    if filled and number % 3 == 0:
        paper, outside = 200, 250
    font = ImageFont.truetype(path, size)
    left, top, right, bottom = map(round, font.getbbox(text))
    gap = size // 2
    shape = number % 3  # square, rounded, or with round ends
    height = bottom - top + 2 * gap
    width = right - left + 2 * gap + (height // 2 if shape == 2 else 0)
    edge = 4 + number % 20
    sheet = Image.new("L", (width + 2 * edge, height + 2 * edge), outside)
    pen = ImageDraw.Draw(sheet)
    thick = 0 if filled and number % 2 else 1 + number % 4
    box = (edge, edge, edge + width - 1, edge + height - 1)
    radius = (0, size // 4, height // 2)[shape]
    pen.rounded_rectangle(box, radius, fill=paper, outline=20 if thick else None, width=thick)
    ink = 245 if paper < 128 else 25
    place = (edge + (width - right + left) // 2 - left, edge + gap - top)
    pen.text(place, text, fill=ink, font=font)
    return sheet


def cases(korean: list[str], english: list[str]) -> Iterator[tuple[str, str, list[Case]]]:
    """Yield the kinds, their parts, and the images of each."""
    codes = [each for line in CODES.split("\n") for each in line.split("|") if each]
    ordinary = [SHARE / name for name in ORDINARY]

    def font(number: int) -> Path:
        return ordinary[number % len(ordinary)]

    def size(number: int) -> int:
        return SIZES[number % len(SIZES)]

    texts = [text for pair in zip(korean, english, strict=True) for text in pair][:LINES]
    yield "plain", "", [Case(drawn(t, font(n), size(n)), t) for n, t in enumerate(texts)]
    for kind, filled in (("frames", False), ("buttons", True)):
        images = (framed(text, font(n), n, filled=filled) for n, text in enumerate(texts))
        yield kind, "", [Case(image, text) for image, text in zip(images, texts, strict=True)]
    yield "codes, prices", "", [Case(drawn(t, font(n), size(n)), t) for n, t in enumerate(codes)]
    random = generator(1, "blur")
    yield (
        "blurred",
        "",
        [
            Case(
                drawn(text, font(n), size(n)).filter(
                    ImageFilter.GaussianBlur(size(n) * random.uniform(0.04, 0.075))
                ),
                text,
            )
            for n, text in enumerate(texts)
        ],
    )
    for kind, names in (("display", DISPLAY), ("handwriting", HANDWRITING)):
        for name in names:
            path = SHARE / name
            lacking = Font(path).lacks(set("가나다뷁한글"))
            able = [
                text for text in (english if lacking else korean) if not Font(path).lacks(set(text))
            ]
            yield (
                kind,
                path.stem,
                [Case(drawn(t, path, size(n)), t) for n, t in enumerate(able[:LINES])],
            )


def tesseract(images: list[Image.Image]) -> list[str]:
    """Read lines with tesseract."""
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        for image in images:
            path = Path(folder) / "line.png"
            image.save(path)
            command = ["tesseract", str(path), "-", "-l", "kor+eng", "--psm", "7"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            texts.append(done.stdout)
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="read-ko")
    parser.add_argument("--fonts", action="store_true", help="a row for each font, too")
    parser.add_argument("--no-tesseract", action="store_true")
    arguments = parser.parse_args()
    reader = load(arguments.model, Reader)
    data: Any = load("ko-en").folder.recipe.data
    corpus = corpus_split("test", data)
    chosen = [
        (plain(korean), plain(english))
        for korean, english in zip(corpus.source, corpus.target, strict=True)
        if len(korean) <= 24 and len(english) <= 44
    ][: 4 * LINES]
    beside = not arguments.no_tesseract and shutil.which("tesseract") is not None
    kinds: dict[str, list[tuple[str, int, list[int]]]] = {}
    for kind, part, some in cases([a for a, _ in chosen], [b for _, b in chosen]):
        images = [each.image for each in some]
        read = [reader(images), tesseract(images) if beside else [""] * len(images)]
        wanted = [plain(each.text) for each in some]
        edits = [
            sum(edit_distance(plain(a), b) for a, b in zip(texts, wanted, strict=True))
            for texts in read
        ]
        kinds.setdefault(kind, []).append((part, sum(map(len, wanted)), edits))
    print(f"{'':<34}{arguments.model:>12}{'tesseract' if beside else '':>12}")
    for kind, parts in kinds.items():
        total = sum(count for _, count, _ in parts)
        sums = [sum(edits[n] for *_, edits in parts) for n in (0, 1)]
        rows = [(kind, total, sums)]
        if arguments.fonts:
            rows += [(f"  {part}", count, edits) for part, count, edits in parts if part and count]
        for name, count, edits in rows:
            columns = [f"{100 * each / count:12.2f}" for each in edits[: 1 + beside]]
            print(f"{name:<34}{''.join(columns)}")


if __name__ == "__main__":
    main()
