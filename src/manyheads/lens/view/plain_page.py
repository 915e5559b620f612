"""One HTML file with everything in it, and a policy that allows nothing else.

A plain page has texts, tables and SVG, and no scripts.
"""

import base64
import hashlib
import html
from collections.abc import Iterable
from pathlib import Path

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


def html_document(title: str, policy: str, style: str, body: str, metas: str = "") -> str:
    """Write a document.

    Args:
        title: a text.
        policy: the Content-Security-Policy.
        style: CSS.
        body: HTML.
        metas: further lines of the head.
    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
{metas}
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def content_hash(source: str) -> str:
    """Name a script or a style in a Content-Security-Policy."""
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
