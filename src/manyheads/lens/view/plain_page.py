"""A page of texts, tables and SVG without scripts, complete in one file."""

import html
from collections.abc import Iterable
from pathlib import Path

from manyheads.lens.view.html_document import content_hash, html_document

STYLE = Path(__file__).parent / "static" / "plain.css"


def plain_page(
    heading: str, body: Iterable[str], *, title: str = "", reload: int | None = None
) -> str:
    """Write a page with a heading over parts of HTML; a browser loads it again after `reload` s."""
    style = STYLE.read_text(encoding="utf-8")
    policy = f"default-src 'none'; style-src {content_hash(style)}; img-src data:"
    again = f'<meta http-equiv="refresh" content="{reload}">' if reload else ""
    content = "\n".join(body)
    main = f"<main>\n<h1>{html.escape(heading)}</h1>\n{content}\n</main>"
    return html_document(title or heading, policy, style, main, again)
