"""A document divided among processes: the same answers, whatever dies in between."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import manyheads
from manyheads.asks.decode_config import DecodeConfig
from manyheads.bulk import bulk_translator as translate
from manyheads.bulk.blocks import Blocks, BlockTranslator, Outcome, Outcomes, Setup, finish_blocks
from manyheads.bulk.bulk_translator import BulkTranslator
from manyheads.bulk.finished_blocks import Ledger, sole_ledger
from manyheads.bulk.process_runner import ProcessRunner
from manyheads.data.documents.glossary import Entry, Glossary
from manyheads.documents.document_translation import translate_file
from manyheads.documents.fallbacks import FallbackTranslator, Sentence
from manyheads.errors import ManyheadsError, NotFoundError, WorkerError
from manyheads.tasks.translate.predictor import Translator
from tests.cli.conftest import Call, call  # noqa: F401 - a fixture
from tests.project.test_remote import memory  # noqa: F401 - a fixture
from tests.web.test_process import alive, children

MODEL = "date-en-ko"
DAYS = [f"{day} May {year}" for year in (2024, 2025) for day in range(1, 12)]
MANY = "".join(f"{day} May {year}\n" for year in range(200) for day in (1, 2))  # four blocks
TEXT = "".join(f"{day}\n" for day in [*DAYS, "", "Hello you.", "See {0} on 3 June 2021."]).encode()


@pytest.fixture
def translator() -> Translator:
    found = manyheads.load(MODEL)
    assert isinstance(found, Translator)
    return found


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several for so few sentences."""
    monkeypatch.setattr(translate, "BLOCK", 4)


def setup_of(own: FallbackTranslator) -> Setup:
    terms = tuple(own.glossary.entries.values())
    return Setup(MODEL, "torch", None, 1, terms, own.options, own.seed)


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_answer_as_one_does(translator: Translator, tmp_path: Path, workers: int) -> None:
    """Whole documents with a glossary; every sentence is heard of, and noted alike."""
    terms = Glossary([Entry("May", "5월"), Entry("May 2024", "2024년 5월")])
    heard: list[tuple[int, int]] = []

    def through(own: FallbackTranslator) -> BulkTranslator:
        ledger = tmp_path / "parts"
        return BulkTranslator(
            own, setup_of(own), ProcessRunner(workers), ledger, lambda *n: heard.append(n), print
        )

    one = translate_file(translator, TEXT, "days.txt", glossary=terms)
    several = translate_file(translator, TEXT, "days.txt", glossary=terms, through=through)
    assert several.content == one.content
    assert several.lines == one.lines
    assert several.notes == one.notes
    assert any("glossary: 'May 2024' and 'May' overlap" in note for note in one.notes)
    assert any("is unlike what date-en-ko was trained on" in note for note in one.notes)
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)
    assert heard[-1] == (24, 24)


def test_a_stopped_job_goes_on(translator: Translator, tmp_path: Path) -> None:
    """What was finished stays as it is, unless something else is asked for."""
    folder = tmp_path / "parts"

    def bulk(seed: int = 1, stop: int | None = None) -> BulkTranslator:
        def watch(done: int, _among: int) -> None:
            if stop is not None and done >= stop:
                raise KeyboardInterrupt

        own = FallbackTranslator(translator, Glossary([]), translator.decode, seed)
        return BulkTranslator(own, setup_of(own), ProcessRunner(1), folder, watch, print)

    with pytest.raises(KeyboardInterrupt):
        bulk(stop=8).translate_with_fallbacks(DAYS)
    kept = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(kept) == 2
    damaged = sorted(folder.iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    found = bulk().translate_with_fallbacks(DAYS)
    assert found == bulk().own.translate_with_fallbacks(DAYS)
    now = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(now) == 6
    assert [name for name in kept if now[name] == kept[name]] == [
        name for name in kept if name != damaged.name
    ]
    bulk(seed=2).translate_with_fallbacks(DAYS)  # another job, beside the first
    assert len(list(folder.iterdir())) == 12
    with sole_ledger(folder):
        pass
    assert not folder.exists()


def test_a_process_that_is_killed_costs_its_block(translator: Translator) -> None:
    """Others take its work; all blocks are finished, each once."""
    own = FallbackTranslator(translator, Glossary([]), translator.decode, 1)
    others = {child.pid for child in multiprocessing.active_children()}  # of other tests
    days = [f"{day} {month} 2024" for month in ("May", "June", "July") for day in range(1, 29)]
    blocks = {n: days[n : n + 10] for n in range(60)}  # far more work than the kill takes
    found: dict[int, list[Sentence]] = {}

    def finished(number: int, answer: list[Sentence]) -> None:
        assert number not in found
        found[number] = answer
        if len(found) == 1:
            child = next(
                each for each in multiprocessing.active_children() if each.pid not in others
            )
            os.kill(child.pid or 0, signal.SIGKILL)

    failures: list[str] = []
    finish_blocks(ProcessRunner(2), setup_of(own), blocks, finished, failures.append)
    wanted = own.translate_with_fallbacks(days)
    assert sorted(found) == list(blocks)
    for number, answer in found.items():
        assert answer == [wanted[text] for text in blocks[number]]
    assert len(failures) == 1
    assert "a process ended" in failures[0]


LISTS_CHILDREN = pytest.mark.skipif(
    not Path(f"/proc/self/task/{os.getpid()}/children").exists(),
    reason="the system lists no children",
)


def wait_for(processes: list[int]) -> None:
    """Until all have ended."""
    end = time.monotonic() + 30
    while any(map(alive, processes)):
        assert time.monotonic() < end, processes
        time.sleep(0.1)


@LISTS_CHILDREN
def test_processes_end_with_the_command(tmp_path: Path) -> None:
    """Also with one that is killed; given again, the command goes on and leaves nothing."""
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text(MANY)
    words = ["translate", "--model", MODEL, "--file", str(source), "--out", str(out)]
    command = [sys.executable, "-m", "manyheads", *words, "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not list(tmp_path.glob("out.txt.parts/*.json")):
            assert process.poll() is None
            time.sleep(0.05)
        others = children(process.pid)
        process.kill()
    assert len(others) >= 2
    wait_for(others)
    assert not out.exists()
    assert subprocess.run(command, check=False, timeout=120).returncode == 0
    assert len(out.read_text("utf-8").splitlines()) == 400
    assert not list(tmp_path.glob("*.parts"))


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let programs hear of it: a job in the background of a shell inherits that it is ignored."""
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, inherited)


# Each process finishes its first block only.
SLOW = """
import time
from multiprocessing import parent_process
from manyheads.documents.fallbacks import FallbackTranslator

translate = FallbackTranslator.translate_with_fallbacks
blocks = []

def slowly(self, texts):
    blocks.append(texts)
    time.sleep(300 if len(blocks) == 2 else 0)
    return translate(self, texts)

if parent_process() is not None:
    FallbackTranslator.translate_with_fallbacks = slowly
"""


@LISTS_CHILDREN
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("presses", [1, pytest.param(2, marks=pytest.mark.full)])
def test_ctrl_c_ends_all_at_once(tmp_path: Path, presses: int) -> None:
    """Blocks in flight are not waited for; what is kept is told."""
    source, out, slow = tmp_path / "in.txt", tmp_path / "out.txt", tmp_path / "slow.py"
    source.write_text(MANY)
    slow.write_text(SLOW)
    words = ["--plugin", str(slow), "translate", "--model", MODEL, "--workers", "2"]
    command = [sys.executable, "-m", "manyheads", *words, "--file", str(source), "--out", str(out)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while len(list(tmp_path.glob("out.txt.parts/*.json"))) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        others = children(process.pid)
        for _ in range(presses):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.2)
        said = process.communicate(timeout=60)[1]
    wait_for(others)
    assert process.returncode != 0
    assert not out.exists()
    kept = tmp_path / "out.txt.parts"
    assert [path.suffix for path in kept.iterdir()] == [".json"] * 2
    if presses == 1:
        assert process.returncode == 130
        # The second block may have been kept just before it is counted.
        told = rf"(128|256) of 400 sentences are kept in {re.escape(str(kept))}\. Give the command"
        assert re.search(told, said)
        assert "Traceback" not in said


@LISTS_CHILDREN
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_processes_start(tmp_path: Path) -> None:
    """It is one message, not one traceback of each."""
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text(MANY)
    words = ["translate", "--model", MODEL, "--file", str(source), "--out", str(out)]
    command = [sys.executable, "-m", "manyheads", *words, "--workers", "2"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while len(others := children(process.pid)) < 2:  # one of them keeps track of resources
            assert process.poll() is None
            time.sleep(0.001)
        time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    wait_for(others)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt"]


@pytest.mark.parametrize("output", ["out.txt", "sub/../out.txt"])
def test_one_job_an_output(call: Call, tmp_path: Path, output: str) -> None:  # noqa: F811
    """Another one is refused, and what the first has finished stays."""
    source, folder = tmp_path / "in.txt", tmp_path / "out.txt.parts"
    source.write_bytes(TEXT)
    (tmp_path / "sub").mkdir()
    given = ("translate", "--model", MODEL, "--file", str(source), "--workers", "1")
    with sole_ledger(folder):
        first = Ledger(folder, "a" * 64)
        first.keep(0, ["x"])
        found = call(*given, "--out", output)
        assert found.code == 2
        assert f"is in use: process {os.getpid()} on " in found.err
        assert "translates there" in found.err
        assert first.finished(0) == ["x"]
    assert not (tmp_path / "out.txt").exists()
    assert call(*given, "--out", output).code == 0
    assert not folder.exists()


class NeedsTwoError(ManyheadsError):
    """It cannot be read from a pickle, which keeps the message alone."""

    def __init__(self, message: str, detail: int) -> None:
        super().__init__(message)
        self.detail = detail


def test_an_error_that_cannot_be_pickled_is_told_as_text(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the process that should hear of it would break."""

    def fail(*_given: object) -> None:
        raise NeedsTwoError("no heads left", 2)

    own = FallbackTranslator(translator, Glossary([]), translator.decode, 1)
    worker = BlockTranslator(setup_of(own))
    monkeypatch.setattr(FallbackTranslator, "translate_with_fallbacks", fail)
    outcome = worker.translate(3, DAYS)
    read = ForkingPickler.loads(ForkingPickler.dumps(outcome))
    assert str(read.error) == "NeedsTwoError: no heads left"


def test_a_model_that_cannot_be_loaded(translator: Translator) -> None:
    """The reason is told, at once."""
    own = FallbackTranslator(translator, Glossary([]), translator.decode, 1)
    setup = Setup("nosuch", "torch", None, 1, (), own.options, 1)
    with pytest.raises(NotFoundError, match="nosuch"):
        finish_blocks(ProcessRunner(1), setup, {0: DAYS[:1]}, lambda *_: None, print)


class Failing:
    """Runs blocks here; some of them fail at first, some are lost."""

    restarts = 0

    def __init__(self, failing: dict[int, int], lost: dict[int, int]) -> None:
        self.failing, self.lost = failing, lost  # how often, by block

    def run(self, setup: Setup, blocks: Blocks) -> Outcomes:
        for number in blocks:
            if self.lost.get(number, 0) > 0:
                self.lost[number] -= 1
            elif self.failing.get(number, 0) > 0:
                self.failing[number] -= 1
                yield Outcome(number, None, RuntimeError(f"no room for {number}"))
            else:
                yield Outcome(number, [])

    def close(self) -> None: ...


def finish(runner: Failing) -> tuple[list[int], list[str]]:
    done: list[int] = []
    failures: list[str] = []
    setup = Setup(MODEL, "torch", None, 1, (), DecodeConfig(), 1)
    blocks = {n: [f"text {n}"] for n in range(4)}
    finish_blocks(runner, setup, blocks, lambda number, _: done.append(number), failures.append)
    return done, failures


def test_blocks_that_fail_are_run_again() -> None:
    """Each is told, and is finished once."""
    done, failures = finish(Failing({1: 2}, {3: 1}))
    assert done == [0, 2, 3, 1]
    assert [failure.partition(":")[2] for failure in failures if "failed" in failure] == [
        " no room for 1",
        " no room for 1",
    ]
    assert sum("1 blocks without an answer" in failure for failure in failures) == 1


def test_an_end_and_no_loop() -> None:
    """A block that always fails, and processes that never live."""
    with pytest.raises(WorkerError, match=r"failed 3 times.*no room for 2.*'text 2'"):
        finish(Failing({2: 9}, {}))
    with pytest.raises(WorkerError, match="before they had finished a block"):
        finish(Failing({}, dict.fromkeys(range(4), 9)))


def test_a_ledger_keeps_its_own_job(tmp_path: Path) -> None:
    """By everything that the answers depend on."""
    one, other = Ledger(tmp_path, "a" * 64), Ledger(tmp_path, "a" * 12 + "b" * 52)
    assert one.finished(3) is None
    one.keep(3, ["x"])
    assert one.finished(3) == ["x"]
    assert other.finished(3) is None


@pytest.mark.parametrize("name", ["german.txt", ".manyheads-x.part/german.txt", "0" * 12])
def test_a_folder_of_somebody_else_is_no_ledger(call: Call, tmp_path: Path, name: str) -> None:  # noqa: F811
    """Refused, whatever is in it: at the end a ledger is removed."""
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(TEXT)
    own = tmp_path / "out.txt.parts" / name
    own.parent.mkdir(parents=True)
    own.write_bytes(TEXT)
    given = ("translate", "--model", MODEL, "--file", str(source), "--out", str(out))
    found = call(*given, "--workers", "1")
    assert found.code == 2
    assert "is something else: move it away" in found.err
    assert own.read_bytes() == TEXT
    assert not out.exists()


def test_a_ledger_that_is_read_is_refused(call: Call, tmp_path: Path) -> None:  # noqa: F811
    """Also a block of another job, to look what is in it."""
    folder = tmp_path / "out.txt.parts"
    folder.mkdir()
    (block := folder / "0123456789ab-000000.json").write_bytes(TEXT)
    given = ("translate", "--model", MODEL, "--file", str(block), "--format", "text")
    found = call(*given, "--out", str(tmp_path / "out.txt"), "--workers", "1")
    assert found.code == 2
    assert "would be written over" in found.err
    assert block.read_bytes() == TEXT


def test_what_was_put_into_a_ledger_stays(tmp_path: Path) -> None:
    """Though it came after the check."""
    with sole_ledger(tmp_path / "parts"):
        Ledger(tmp_path / "parts", "a" * 64).keep(0, [])
        (tmp_path / "parts" / "notes.txt").write_text("mine")
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["notes.txt"]


def test_the_command(call: Call, tmp_path: Path) -> None:  # noqa: F811
    """The same file with and without; nothing is left beside it."""
    source, one, several = (tmp_path / name for name in ("in.txt", "one.txt", "several.txt"))
    source.write_bytes(TEXT)
    for out, more in ((one, ()), (several, ("--workers", "2"))):
        given = ("translate", "--model", MODEL, "--file", str(source), "--out", str(out), *more)
        assert call(*given).code == 0
    assert several.read_bytes() == one.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "one.txt", "several.txt"]
    wrong = call("translate", "--model", MODEL, "--workers", "2", "1 May 2024")
    assert wrong.code == 2
    assert "--file" in wrong.err


def table(path: Path, **columns: Sequence[object]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_tables(call: Call, tmp_path: Path) -> None:  # noqa: F811
    """Rows in the order of the files' names; a text of two lines stays one row."""
    (tmp_path / "in").mkdir()
    table(tmp_path / "in" / "b.parquet", en=[DAYS[2], None], id=[3, 4])
    table(tmp_path / "in" / "a.parquet", en=[DAYS[0], f"{DAYS[1]}\n{DAYS[0]}"], id=[1, 2])
    pattern, out, text = str(tmp_path / "in" / "*.parquet"), tmp_path / "o.parquet", tmp_path / "o"
    given = ("translate", "--model", MODEL, "--file", pattern)
    assert call(*given, "--out", str(out), "--workers", "2").code == 0
    rows = pq.read_table(out).to_pydict()
    assert rows["source"] == [DAYS[0], f"{DAYS[1]}\n{DAYS[0]}", DAYS[2], ""]
    first, second = (call("translate", "--model", MODEL, day).out.strip() for day in DAYS[:2])
    assert rows["translation"][:2] == [first, f"{second}\n{first}"]
    assert rows["translation"][3] == ""
    assert call(*given, "--out", str(text)).code == 0
    assert text.read_text("utf-8").splitlines() == [
        translation.replace("\n", " ") for translation in rows["translation"]
    ]
    found = call(*given, "--json").out.splitlines()
    assert [json.loads(line)["row"] for line in found] == [1, 2, 3, 4]


def test_tables_by_address(
    call: Call,  # noqa: F811
    memory: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    """They are copied, as all data are, and in several folders if the pattern says so."""
    for number, folder in enumerate(("one", "two")):
        (tmp_path / "in" / folder).mkdir(parents=True)
        path = table(tmp_path / "in" / folder / "a.parquet", en=[DAYS[number]])
        memory.pipe(f"/in/{folder}/a.parquet", path.read_bytes())
    pattern = f"{tmp_path}/in/*/a.parquet"
    here = call("translate", "--model", MODEL, "--file", pattern)
    assert len(here.out.splitlines()) == 2
    assert call("translate", "--model", MODEL, "--file", f"file://{pattern}").out == here.out
    assert not (tmp_path / "cache").exists()
    found = call("translate", "--model", MODEL, "--file", "memory://in/*/a.parquet")
    assert found.out == here.out
    assert len([*(tmp_path / "cache").rglob("a.parquet")]) == 2
    memory.pipe("/in/damaged.parquet", b"PAR1")
    for name in ("memory://in/damaged.parquet", "memory://in/d*.parquet"):
        damaged = call("translate", "--model", MODEL, "--file", name)
        assert damaged.code != 0
        assert name in damaged.err
        assert "damaged.parquet" in damaged.err
        assert str(tmp_path) not in damaged.err
        assert not damaged.err.strip().endswith("..")
    text = call("translate", "--model", MODEL, "--file", "memory://in/a.txt")
    assert text.code == 2
    assert "only .parquet tables" in text.err
    wrong = call("translate", "--model", MODEL, "--file", "carrier-pigeon://x/a.parquet")
    assert wrong.code == 2
    assert "Protocols: " in wrong.err


@pytest.mark.parametrize("protocol", ["file", "local"])
def test_addresses_of_this_machine(call: Call, tmp_path: Path, protocol: str) -> None:  # noqa: F811
    """They are paths: of texts too, and nothing is written over them."""
    source = tmp_path / "in.txt"
    source.write_bytes(TEXT)
    rows = table(tmp_path / "a.parquet", en=DAYS[:2])
    given = ("translate", "--model", MODEL, "--file")
    plain = call(*given, str(source))
    assert call(*given, f"{protocol}://{source}").out == plain.out
    before = rows.read_bytes()
    for address in (f"{protocol}://{rows}", f"{protocol}://{tmp_path}/*.parquet"):
        for more in ((), ("--workers", "1")):
            found = call(*given, address, "--out", str(rows), *more)
            assert found.code == 2
            assert "would be written over" in found.err
    assert rows.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "in.txt"]


@pytest.mark.parametrize("out", ["s3://bucket/o.txt", "file:///nowhere/o.txt"])
def test_no_output_to_an_address(call: Call, tmp_path: Path, out: str) -> None:  # noqa: F811
    """Nor into a folder that is called like one."""
    source = tmp_path / "in.txt"
    source.write_bytes(TEXT)
    found = call("translate", "--model", MODEL, "--file", str(source), "--out", out)
    assert found.code == 2
    assert "is an address" in found.err
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_a_text_file_becomes_a_table(call: Call, tmp_path: Path) -> None:  # noqa: F811
    source, out = tmp_path / "in.txt", tmp_path / "out.parquet"
    source.write_text(f"{DAYS[0]}\n\n{DAYS[1]}\n", encoding="utf-8")
    assert call("translate", "--model", MODEL, "--file", str(source), "--out", str(out)).code == 0
    rows = pq.read_table(out).to_pydict()
    assert rows["source"] == [DAYS[0], "", DAYS[1]]
    assert rows["translation"][1] == ""
    page = tmp_path / "in.html"
    page.write_text("<p>1 May 2024</p>", encoding="utf-8")
    wrong = call("translate", "--model", MODEL, "--file", str(page), "--out", str(out))
    assert wrong.code == 2
    assert "no rows" in wrong.err


def test_mistakes_about_tables(call: Call, tmp_path: Path) -> None:  # noqa: F811
    """What there is, and what to do."""
    path = table(tmp_path / "two.parquet", first=["x"], second=["y"], third=[1])

    def said(*more: str, file: Path = path) -> str:
        found = call("translate", "--model", MODEL, "--file", str(file), *more)
        assert found.code != 0
        return found.err

    assert "several columns of texts: first, second" in said()
    assert "--column" in said()
    assert "did you mean 'first'" in said("--column", "fist")
    assert "holds int64, not texts" in said("--column", "third")
    assert "There is no file" in said(file=tmp_path / "no*.parquet")
    assert "--column is of a .parquet table" in said("--column", "x", file=tmp_path / "in.txt")
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(path.read_bytes()[:-9])
    assert "cannot be read as parquet" in said(file=damaged)
    assert "would be written over" in said("--column", "first", "--out", str(path))
    raw = tmp_path / "raw.parquet"
    pq.write_table(pa.table({"en": pa.array([b"a", b"\xff"]).view(pa.string())}), raw)
    assert "row 2: byte 1 of the text, 0xff, is not valid UTF-8" in said(file=raw)
    nested = tmp_path / "nested.parquet"
    pq.write_table(pa.table({"translation": [{"en": DAYS[0], "ko": "x"}]}), nested)
    assert call("translate", "--model", MODEL, "--file", str(nested)).out.strip()
