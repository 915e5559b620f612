"""Prices, codes, times and addresses, as signs, receipts and screens print them.

A reader that has seen sentences alone knows what text is likely, and reads "O" for "0" in a code.
"""

import re
import string

import numpy as np

# 9 stands for a digit, A and a for a letter.
_LISTED = """
9,990원|₩9,990|99,990원|9만 9천원|$9.90|$9,990.99|€9.90|9,90 €|£9.99|9.99 USD|9+9|9%|-9%|99.9%|
99×99|
AA-9999|A9A-9A9|AAA 9999|A9|A9999A|9A9A-A9A9-9A99|AA9999-9|#9999|#A-99999|N9|9A|9a|AA99AAAA|A-9|
aa9a99aa|9x9a|a9-99|v9.9.9|aaa_aa|a_a.aa|aaaaa@aaaa.aaa|www.aaaaaa.aa|https://aaaa.aaa/aa9a|a.aa|
999-9999-9999|99)999-9999|+99 99-9999-9999|(999) 999-9999|9999-99-99|99.99.99|9999.9.9.|99/99/99|
9월 9일|9999년 9월|9:99|99:99|오후 9시|9:99 PM|99km|9.9 kg|999ml|9GB|99℃|-9°|9층|99호|
999-9번지|9개|9명|
No.9|Aaaaa 9|AAAAA 9|9/9|9~9|<aaa>|[AA-9]|A&A|aaa.aa(9)|a=9;|{a: 9}|9.9e-9|AA:AA:99:9A|Aaaa Aa.|9회
"""
PATTERNS = _LISTED.replace("\n", "").split("|")
KINDS = {"9": string.digits, "A": string.ascii_uppercase, "a": string.ascii_lowercase}


def codes(random: np.random.Generator, most: int = 4) -> str:
    """Draw one to `most` codes of random digits and letters."""

    def drawn(match: re.Match[str]) -> str:
        kind = KINDS[match[0]]
        return kind[int(random.integers(len(kind)))]

    places = random.integers(len(PATTERNS), size=int(random.integers(1, most + 1)))
    return re.sub("[9Aa]", drawn, " ".join(PATTERNS[place] for place in places))
