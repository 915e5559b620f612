"""Every verb explains itself, quickly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from manyheads import __version__
from manyheads.version import code_digest
from tests.cli.conftest import Call

VERBS = [
    "train",
    "translate",
    "classify",
    "generate",
    "fill",
    "tag",
    "index",
    "search",
    "evaluate",
    "compare",
    "look",
    "info",
    "models",
    "convert",
    "doctor",
    "lab",
]


def test_help_lists_the_verbs(call: Call) -> None:
    """On stdout, because it was asked for."""
    code, out, err = call("--help")
    assert (code, err) == (0, "")
    for verb in VERBS:
        assert verb in out


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_verb_has_help(call: Call, verb: str, option: str) -> None:
    """What it is for, and its options."""
    code, out, err = call(verb, option)
    assert (code, err) == (0, "")
    assert f"manyheads {verb}" in out
    assert "--help" in out


def test_the_options_of_the_contract(call: Call) -> None:
    """Contracts: the grammar that scripts rely on."""
    promised = {
        "train": ["--out", "--resume"],
        "translate": ["--model", "--beam", "--json"],
        "classify": ["--model", "--top", "--json"],
        "generate": ["--model", "--beam", "--sample", "--json"],
        "fill": ["--model", "--top", "--json"],
        "tag": ["--model", "--json"],
        "index": ["--out", "--model", "--prune", "--json"],
        "search": ["--index", "--top", "--json"],
        "evaluate": ["--model", "--data", "--split", "--final", "--json"],
        "compare": ["--data", "--split", "--final", "--json"],
        "look": ["--out", "--shapes", "--json"],
        "info": ["--json"],
        "models": ["--json"],
        "convert": ["marian", "to-marian"],
        "doctor": ["--plot", "--json"],
        "lab": ["--quick", "--seeds", "--out", "--json"],
    }
    assert list(promised) == VERBS
    for verb, options in promised.items():
        out = call(verb, "--help").out
        assert [option for option in options if option not in out] == []


def test_version(call: Call) -> None:
    """One word, for scripts."""
    assert call("--version") == (0, f"{__version__}+{code_digest()}\n", "")


def test_no_verb_is_a_wrong_call(call: Call) -> None:
    """Shows the help, and is not mistaken for success."""
    code, out, err = call()
    assert code == 2
    assert "translate" in out + err


@pytest.mark.parametrize(
    "words", [["transalte"], ["translate", "--beams", "3"], ["info"], ["translate", "--beam", "0"]]
)
def test_a_wrong_call(call: Call, words: list[str]) -> None:
    """Unknown verb, unknown option, missing argument, impossible number: 2, and on stderr."""
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert "Usage: " in err
    assert "-h' for help" in err


def test_help_of_any_verb_imports_no_torch() -> None:
    """Start-up is a feature: half a second is the bar, and torch alone takes longer."""
    program = f"""
import sys
from manyheads.cli.main import main
for verb in {VERBS}:
    sys.argv = ["manyheads", verb, "--help"]
    try:
        main()
    except SystemExit as left:
        assert not left.code
heavy = {{"torch", "numpy", "sentencepiece", "matplotlib", "sklearn", "PIL"}} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_list_of_commands_imports_no_pydantic() -> None:
    """Only a command has parameters to validate."""
    program = """
import sys
from manyheads.cli.main import main
sys.argv = ["manyheads", "--help"]
try:
    main()
except SystemExit as left:
    assert not left.code
assert "pydantic" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
@pytest.mark.parametrize(("verb", "bar"), [(None, 0.3), *((verb, 0.5) for verb in VERBS)])
def test_start_up(verb: str | None, bar: float) -> None:
    """--help in 0.3 s of computation, any verb's in 0.5 s: the best of five."""
    words = [sys.executable, "-m", "manyheads", *([verb] if verb else []), "--help"]
    seconds = []
    for _ in range(5):
        began = os.times()
        subprocess.run(words, check=True, capture_output=True)
        ended = os.times()
        seconds.append(sum(ended[2:4]) - sum(began[2:4]))  # of children, in user and system mode
    assert min(seconds) < bar


def test_the_version_says_which_code_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another digest with another content, name or number of modules; other files do not count."""
    monkeypatch.setattr("manyheads.version.__file__", str(tmp_path / "version.py"))
    found = []
    for name, content in (("a.py", "1"), ("a.py", "2"), ("b/c.py", "2"), ("d.toml", "3")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
        found.append(code_digest())
    assert len({*found[:3]}) == 3
    assert found[3] == found[2]
