"""The fuzzer of the API, of a small server: what its log has is a failure, whatever it answered."""

import os
import re
import signal
import time

import httpx

from scripts.fuzz_api import UNEXPECTED, family, ready, server


def test_mistakes_of_clients_are_no_failures() -> None:
    failures: list[str] = []
    with server(failures, "digits") as (address, _):
        assert httpx.post(f"{address}/api/v1/classify", content=b"{").status_code == 400
        assert httpx.post(f"{address}/api/v1/classify", json={"images": ["a"]}).status_code == 422
        assert httpx.get(f"{address}/nothing").status_code == 404
    assert failures == []


def test_a_process_that_ends_is_a_failure() -> None:
    """It is started again and answers, so that only the log shows it."""
    failures: list[str] = []
    with server(failures, "digits") as (address, pid):
        for worker in family(pid)[1:]:
            os.kill(worker, signal.SIGKILL)
        end = time.monotonic() + 120
        while not re.search("restarts_total [1-9]", httpx.get(f"{address}/metrics").text):
            assert time.monotonic() < end
            time.sleep(0.05)
        while not ready(address):
            assert time.monotonic() < end
            time.sleep(0.05)
    assert failures
    assert all("has ended" in line for line in failures)


def test_lines_of_a_log() -> None:
    """By hand: an error of a request, of a thread, of a task; a warning is none."""
    log = """
serving digits at http://127.0.0.1:8000 (Ctrl-C stops)
2026-11-25 10:10:08,123 WARNING digits was written anew, and is loaded again
2026-11-25 10:10:08,123 ERROR error 01234567: ZeroDivisionError at manyheads.web.ask_queue:9
Exception in thread model-digits:
Traceback (most recent call last):
  File "a.py", line 9, in ERROR
"""
    found = [n for n, line in enumerate(log.splitlines()) if UNEXPECTED.search(line)]
    assert found == [3, 4, 5]
