"""One HTML file with everything in it, and a policy that allows nothing else."""

import base64
import hashlib
import html


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
