"""The page about serving: its commands run as written, against a server."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.web.running import Running, running
from tests.web.test_files import docx, parts

PAGE = (Path(__file__).parents[1] / "docs" / "serve.md").read_text(encoding="utf-8")
BASH = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)).replace("\\\n", " ")
CURL = [line for line in BASH.splitlines() if line.startswith("curl ")]
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
@pytest.mark.parametrize("line", CURL)
def test_curl(line: str, server: Running, tmp_path: Path) -> None:
    Image.new("RGB", (64, 64), "orange").save(tmp_path / "cat.png")
    (tmp_path / "report.docx").write_bytes(docx())
    assert ADDRESS in line
    command = line.replace(ADDRESS, server.address).replace("curl -s", "curl -sS --fail", 1)
    found = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, (found.stdout, found.stderr)
    if "-o look.html" in line:
        assert (tmp_path / "look.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    elif "-o bericht.docx" in line:
        assert (
            b"Two dogs" not in parts((tmp_path / "bericht.docx").read_bytes())["word/document.xml"]
        )
    elif "/metrics" in line:
        assert "manyheads_requests_total" in found.stdout
    else:
        assert json.loads(found.stdout.splitlines()[-1])


def test_python(server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(code.replace(ADDRESS, server.address), {})
    assert capsys.readouterr().out == "Ein Mann reinigt ein Fenster.\n"


def test_all_are_tried() -> None:
    """Of each path one, and each option of the page is one of the command."""
    assert len(CURL) == 18
    from manyheads.cli.main import load_verb

    asked = {"port", "index", "engine", "device", "threads", "token_file", "host", "public"}
    assert asked <= {each.name for each in load_verb("serve").params}
