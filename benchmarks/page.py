"""How long a visitor of the served page waits.

For the answer and its threads, for a sentence that was pasted, a word that was struck, and a word
whose state in the model was set to zero.

    python -m benchmarks.page --visits 15 [--json]

A server of the shipped models is a process of its own; the browser is a real one, whose cache is
emptied before each visit. Of each wait the median is printed, in milliseconds: from the navigation
or the event to what can be seen. The first visit, which loads the model, is left out.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.serving import server
from tests.browser import Page, browser

VISIT = """(async () => {
  const seen = async (test) => {
    while (!test()) await new Promise(requestAnimationFrame);
    return performance.now();
  };
  const answer = await seen(() => document.querySelector('.out .sentence-of'));
  const threads = await seen(() => document.querySelector('.ties path'));
  return [answer, threads];
})()"""
# Something is done, and then the answer changes: the time between the two.
CHANGE = """(async () => {
  const out = document.querySelector('.out');
  BEFORE
  const before = out.dataset.text;
  const begin = performance.now();
  ACT
  while (out.dataset.text === before) await new Promise(requestAnimationFrame);
  return performance.now() - begin;
})()"""
PASTE = """const field = document.getElementById('source');
  field.value = TEXT;
  field.dispatchEvent(new Event('input', { bubbles: true }));"""
WORDS = "while (!out.querySelector('.word')) await new Promise(requestAnimationFrame);"
# The state of "red" is chosen, to be set to zero.
STATE = """const parts = document.querySelector('.believe select');
  const state = [...parts.options].find((each) => each.text.includes('“red”'));
  parts.value = state.value;
  parts.dispatchEvent(new Event('change'));"""
EDITED = "My+sister+bought+a+red+bicycle+for+our+old+neighbour+last+summer."  # 12 words
SENTENCES = (
    "Can you help me with this heavy suitcase, please?",
    "The train to the airport leaves in twenty minutes.",
    "My sister bought a red bicycle for her birthday.",
)


def change(act: str, before: str = "") -> str:
    """The program that does something, after what is to be there before."""
    return CHANGE.replace("BEFORE", before).replace("ACT", act)


def click(selector: str) -> str:
    return f"document.querySelector({json.dumps(selector)}).click();"


def measure(page: Page, address: str, visits: int) -> dict[str, float]:
    """Visit the page so many times."""
    names = ("answer", "threads", "pasted", "struck", "edited")
    waits: dict[str, list[float]] = {name: [] for name in names}
    for number in range(visits + 1):
        page.command("Network.clearBrowserCache")
        page.visit(f"{address}/#text=A+dog+runs.", "document.getElementById('source')")
        answer, threads = page.evaluate(VISIT)
        text = SENTENCES[number % len(SENTENCES)]
        pasted = page.evaluate(change(PASTE.replace("TEXT", json.dumps(text))))
        page.wait("document.querySelector('.out .word') && !document.querySelector('.out.old')")
        page.evaluate(
            "(() => { const f = document.getElementById('source');"
            "f.focus(); f.setSelectionRange(9, 9);"
            "f.dispatchEvent(new KeyboardEvent('keyup')); })()"
        )
        struck = page.evaluate(change(click(".strike"), WORDS))
        edited_page = f"{address}/?{number}#inside=1&text={EDITED}"
        page.visit(edited_page, "document.querySelector('.believe option')")
        page.wait("document.querySelector('.out .word')")
        edited = page.evaluate(change(click(".believe [value=without]"), STATE))
        if number:  # the first one loads the model
            found = (answer, threads, pasted, struck, edited)
            for name, value in zip(waits, found, strict=True):
                waits[name].append(value)
    return {name: round(statistics.median(values), 1) for name, values in waits.items()}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visits", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with (
        server("torch") as (address, _),
        tempfile.TemporaryDirectory() as folder,
        browser(Path(folder)) as page,
    ):
        page.size(1280, 900)
        found: dict[str, Any] = measure(page, address, arguments.visits)
    if arguments.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:8} {value:7.1f} ms")


if __name__ == "__main__":
    main()
