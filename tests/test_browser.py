"""The browser of the tests: started again if it ends early, and waited for."""

from pathlib import Path

import pytest

from tests import browser

pytestmark = pytest.mark.skipif(browser.found() is None, reason=browser.MISSING)


def program(path: Path, text: str) -> str:
    """A program in the place of the browser."""
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_browser_that_ends_early_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice, as on a machine that is short of memory for a moment."""
    text = f"""
echo x >> {tmp_path}/starts
[ $(wc -l < {tmp_path}/starts) -gt 2 ] || exit 1
exec {browser.found()} "$@"
"""
    monkeypatch.setenv("MANYHEADS_BROWSER", program(tmp_path / "first-fails", text))
    with browser.browser(tmp_path / "profile") as page:
        assert page.evaluate("1 + 1") == 2


def test_a_browser_that_never_starts_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "echo no room here >&2; exit 1"
    monkeypatch.setenv("MANYHEADS_BROWSER", program(tmp_path / "fails", text))
    with (
        pytest.raises(browser.BrowserError, match=r"(?s)started 3 times.*no room here"),
        browser.browser(tmp_path / "profile"),
    ):
        raise AssertionError("it never starts")


@pytest.mark.parametrize("times", [20, pytest.param(60, marks=pytest.mark.full)])
def test_a_page_that_is_replaced_is_waited_for(tmp_path: Path, times: int) -> None:
    """Between two pages there is none to ask, which is an answer now and then: not yet true."""
    path = tmp_path / "page.html"
    path.write_text("<title>page</title>" + "<p>text</p>" * 2000, encoding="utf-8")
    with browser.browser(tmp_path / "profile") as page:
        page.visit(path.as_uri(), "document.title === 'page'")
        for number in range(times):
            page.evaluate(f"void (location.search = '?{number}')")
            page.wait(f"location.search === '?{number}'")
    assert page.problems == []
