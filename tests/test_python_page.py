"""The page about Python: its code runs as it stands, the app under requests of several clients."""

import logging
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

PAGE = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the test client
def test_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "app"}
    logger = logging.getLogger("manyheads")
    level = logger.level
    try:
        for block in BLOCKS:
            exec(compile(block, "python.md", "exec", dont_inherit=True), names)
    finally:
        logger.setLevel(level)
    printed = capsys.readouterr().out.splitlines()
    comments = re.findall(r"print\(\w+\)\s+# (.*)", PAGE)
    assert printed[0].startswith(comments[0].removesuffix(" ..."))
    assert printed[-1] == comments[1]
    assert "unlike" in printed[1]
    serve(names["app"])


def serve(app: Any) -> None:
    """Ask from eight threads at a time; every client gets the answer to its own texts."""
    with TestClient(app) as client, ThreadPoolExecutor(8) as clients:
        bodies = [{"texts": [f"Nov {day}, 2026", f"{day} May 2027"]} for day in range(1, 17)]
        answers = list(clients.map(lambda body: client.post("/dates", json=body).json(), bodies))
        found = [[each["text"] for each in answer] for answer in answers]
        assert found == [[f"2026년 11월 {n}일", f"2027년 5월 {n}일"] for n in range(1, 17)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert client.post("/dates", json={"texts": "one"}).status_code == 422
