"""Short English and Korean phrases: greetings and signs, prices, dates, times and ages.

Corpora of sentences hardly have what people type first. The phrases are written for this project;
numbers are drawn. A line of phrases.en-ko.tsv has ways to say one thing, the usual one first.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

Pair = tuple[str, str]
MONTHS = "January February March April May June July August September October November December"
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKDAYS = "월화수목금토일"
TENS = ("", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔")
ONES = ("", "하나", "둘", "셋", "넷", "다섯", "여섯", "일곱", "여덟", "아홉")
SHORT = {"하나": "한", "둘": "두", "셋": "세", "넷": "네", "스물": "스무"}  # before a noun
COUNTED = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
THINGS = (
    ("ticket", "표", "장"),
    ("book", "책", "권"),
    ("cup of coffee", "커피", "잔"),
    ("bottle of water", "물", "병"),
    ("apple", "사과", "개"),
    ("person", "사람", "명"),
    ("cat", "고양이", "마리"),
    ("car", "차", "대"),
)
ALIVE = ("명", "마리")  # what nobody orders
DRAWN = 100  # of each kind of sentence


def written() -> Iterator[Pair]:
    """Read the phrases: each way to say something, with the usual one of the other language."""
    path = Path(__file__).parent / "phrases.en-ko.tsv"
    for line in path.read_text(encoding="utf-8").splitlines():
        english, korean = (side.split("|") for side in line.split("\t"))
        yield from ((each, korean[0]) for each in english)
        yield from ((english[0], each) for each in korean[1:])


def korean_count(number: int, *, noun: bool = True) -> str:
    """Write a number under 100 in Korean words.

    Examples:
        >>> korean_count(25), korean_count(3), korean_count(20), korean_count(5, noun=False)
        ('스물다섯', '세', '스무', '다섯')
    """
    ten, one = TENS[number // 10], ONES[number % 10]
    if noun:
        ten, one = (ten if one else SHORT.get(ten, ten)), SHORT.get(one, one)
    return ten + one


def english_count(number: int) -> str:
    """Write a number under 100 in English words.

    Examples:
        >>> english_count(25), english_count(12), english_count(40)
        ('twenty-five', 'twelve', 'forty')
    """
    if number < 20:
        return COUNTED.split()[number - 1]
    ten, rest = ROUND.split()[number // 10 - 2], number % 10
    return ten + (f"-{COUNTED.split()[rest - 1]}" if rest else "")


def drawn() -> Iterator[Pair]:
    """Draw sentences with numbers, always the same ones."""
    random, months = Random(2), MONTHS.split()
    for _ in range(DRAWN):
        month, day, week = random.randrange(12), random.randint(1, 28), random.randrange(7)
        year, hour, minute = random.randint(1950, 2035), random.randint(1, 12), random.randrange(60)
        english, korean = f"{months[month]} {day}", f"{month + 1}월 {day}일"
        yield english, korean
        yield f"{english}, {year}", f"{year}년 {korean}"
        yield f"Today is {DAYS[week]}, {english}.", f"오늘은 {korean} {WEEKDAYS[week]}요일이에요."
        yield f"It's {english}.", f"{korean}이에요."
        yield f"See you on {english}.", f"{korean}에 봐요."
        yield f"My birthday is on {english}.", f"제 생일은 {korean}이에요."
        yield f"I was born in {year}.", f"저는 {year}년에 태어났어요."
        yield f"See you on {DAYS[week]}.", f"{WEEKDAYS[week]}요일에 봐요."
        morning = random.random() < 0.5
        half, part = ("a.m.", "오전") if morning else ("p.m.", "오후")
        clock = f"{hour}:{minute:02d}"
        minutes = f" {minute}분" if minute else ""
        is_it = "이에요" if minute else "예요"
        yield f"It's {clock} {half}", f"{part} {hour}시{minutes}{is_it}."
        yield f"The train leaves at {clock}.", f"기차는 {hour}시{minutes}에 출발해요."
        yield f"Please come by {hour} o'clock.", f"{hour}시까지 와 주세요."
        yield f"Let's meet at {hour} {half}", f"{part} {hour}시에 만나요."
        spoken = korean_count(hour)
        yield f"It's {english_count(hour)} o'clock.", f"{spoken} 시예요."
        yield f"It's half past {english_count(hour)}.", f"{spoken} 시 반이에요."
        won = random.choice((100, 500, 1000)) * random.randint(1, 99)
        price = f"{won:,}"
        yield f"It's {price} won.", f"{price}원이에요."
        yield f"That's {price} won.", f"{price}원입니다."
        yield f"{price} won", f"{price}원"
        yield f"The total is {price} won.", f"합계는 {price}원이에요."
        dollars = random.randint(2, 400)
        yield f"It costs {dollars} dollars.", f"{dollars}달러예요."
        age = random.randint(2, 95)
        yield f"I'm {english_count(age)} years old.", f"저는 {korean_count(age)} 살이에요."
        yield f"I am {age} years old.", f"저는 {age}살이에요."
        yield f"She is {age} years old.", f"그녀는 {age}살이에요."
        count = random.randint(1, 20)
        thing, name, counter = random.choice(THINGS)
        head, *rest = thing.split(" of ")
        plural = "people" if head == "person" else f"{head}s"
        many = " of ".join([head if count == 1 else plural, *rest])
        yield (
            f"{english_count(count).capitalize()} {many}",
            f"{name} {korean_count(count)} {counter}",
        )
        if counter not in ALIVE:
            yield f"{count} {many}, please.", f"{name} {count}{counter} 주세요."
        floor, room = random.randint(1, 30), random.randint(101, 1999)
        yield f"It's on floor {floor}.", f"{floor}층에 있어요."
        yield f"Room {room}", f"{room}호"
        yield f"It takes {minute + 2} minutes.", f"{minute + 2}분 걸려요."
        yield f"{age}%", f"{age}%"
