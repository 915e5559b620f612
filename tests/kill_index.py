"""Index images in processes that are killed: `python -m tests.kill_index IMAGES INDEX KILLS SEED`.

The program loads the model once and forks a process for each attempt. Every second one kills itself
at a chosen place of a commit; the others are killed at a random moment. After each kill a line of
JSON says what the index holds.
"""

import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

import manyheads
from manyheads.errors import NotFoundError
from manyheads.files import append_bytes
from manyheads.image_search import index_folder
from manyheads.image_search import index_writer as writer
from manyheads.image_search.index_folder import IndexFolder
from tests.digit_search import give

CHUNK = 8  # images between two commits
PATCH = pytest.MonkeyPatch()  # never undone: the process dies


def die(*_: object) -> None:
    """As `kill -9` from outside."""
    os.kill(os.getpid(), signal.SIGKILL)


def before_the_header() -> None:
    """The folder has its files, but no index.json."""
    PATCH.setattr(index_folder, "write_json", die)


def within_the_vectors() -> None:
    """A vector and a half is in the file, of a second commit."""
    append = append_bytes

    def half(path: Path, content: bytes, *, behind: int) -> None:
        if behind and content:
            append(path, content[: len(content) // 2 + 7], behind=behind)
            die()
        append(path, content, behind=behind)

    PATCH.setattr(index_folder, "append_bytes", half)


def behind_the_vectors() -> None:
    """The vectors are on the disk, their rows are not."""
    append = append_bytes

    def whole(path: Path, content: bytes, *, behind: int) -> None:
        append(path, content, behind=behind)
        if behind and content:
            die()

    PATCH.setattr(index_folder, "append_bytes", whole)


class _Dying:
    """A connection that dies at a statement."""

    def __init__(self, connection: Any, when: str, *, done: bool) -> None:
        self._connection, self._when, self._done = connection, when, done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __enter__(self) -> Self:
        self._connection.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """Commit, as a connection does at the end of its block; what fails is rolled back."""
        if error == (None, None, None):
            self.execute("COMMIT")
        else:
            self._connection.__exit__(*error)

    def execute(self, statement: str, *parameters: Any) -> Any:
        if statement == self._when and not self._done:
            die()
        found = self._connection.execute(statement, *parameters)
        if statement == self._when:
            die()
        return found


def at(statement: str, *, done: bool) -> Callable[[], None]:
    """A statement of the database, before or after it is done."""
    connect = sqlite3.connect

    def dying(*given: Any, **options: Any) -> Any:
        connection = connect(*given, **options)
        # Not of the connection that makes the tables.
        return _Dying(connection, statement, done=done) if options.get("uri") else connection

    return lambda: PATCH.setattr(sqlite3, "connect", dying)


PLACES = [
    before_the_header,
    within_the_vectors,
    behind_the_vectors,
    at("COMMIT", done=False),
    at("COMMIT", done=True),
]


def attempt(images: str, index: str, place: Callable[[], None] | None) -> None:
    """Index in a process of its own, which may kill itself."""
    if place is not None:
        place()
    manyheads.index(images, out=index, model=MODEL)


def killed(images: str, index: str, place: Callable[[], None] | None, after: float) -> bool:
    """Run an attempt and kill it, by itself or after some seconds; False if it was through."""
    process = os.fork()
    if process == 0:
        try:
            attempt(images, index, place)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if place is None:
        time.sleep(after)
        os.kill(process, signal.SIGKILL)
    status = os.waitpid(process, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return os.WIFSIGNALED(status)


def state(index: str) -> dict[str, Any]:
    """What the index holds."""
    try:
        folder = IndexFolder(Path(index))
    except NotFoundError:
        return {"rows": 0, "images": {}}
    groups = folder.images_of(range(folder.rows))
    vectors = folder.vectors()
    folder.close()
    names = [(each.name, row) for row, group in groups.items() for each in group]
    assert len(names) == len(dict(names))
    return {
        "rows": folder.rows,
        "images": {name: np.array(vectors[row]).tobytes().hex() for name, row in names},
        "bytes": (Path(index) / "vectors.f32").stat().st_size,
    }


MODEL: Any = None


def main() -> None:
    """Kill, and tell what is left; then finish."""
    global MODEL
    images, index, kills, seed = sys.argv[1:]
    give(PATCH)
    writer.CHUNK, writer.COMMIT = CHUNK, 0.0
    MODEL = manyheads.load("digits", threads=1)
    began = time.monotonic()
    manyheads.index(images, out=f"{index}-whole", model=MODEL)
    seconds = time.monotonic() - began
    print(json.dumps({"whole": state(f"{index}-whole")}), flush=True)
    chance = random.Random(int(seed))
    for number in range(int(kills)):
        place = PLACES[number // 2 % len(PLACES)] if number % 2 == 0 else None
        after = chance.uniform(0, 1.5 * seconds / int(kills))
        was_killed = killed(images, index, place, after)
        print(json.dumps({"killed": was_killed, **state(index)}), flush=True)
    answer = manyheads.index(images, out=index, model=MODEL)
    print(json.dumps({"answer": answer.to_json(), **state(index)}), flush=True)


if __name__ == "__main__":
    main()
