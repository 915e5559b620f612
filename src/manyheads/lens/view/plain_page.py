"""A page of texts, tables and SVG without scripts, complete in one file."""

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
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:"
    again = f'<meta http-equiv="refresh" content="{reload}">' if reload else ""
    content = "\n".join(body)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
{again}
<title>{html.escape(title or heading)}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main>
<h1>{html.escape(heading)}</h1>
{content}
</main>
</body>
</html>
"""
