"""How answers look on a terminal."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def print_json(value: Any) -> None:
    """Print one JSON document on one line."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def print_evaluation(line: Mapping[str, Any], folder: Path, *, as_json: bool) -> None:
    """Print a logged evaluation."""
    if as_json:
        print_json({"model": str(folder), **line})
        return
    count = f"{line['pairs']:,} pairs" if "pairs" in line else f"{line['pictures']:,} pictures"
    print(f"{folder}: {line['data']}, {count}")
    for name, score in line["all"].items():
        print(f"  {name:<10} {score['value']:6.2f}   ({score['signature']})")
    groups = line.get("groups") or {}
    for name, value in sorted(groups.items(), key=lambda entry: entry[1]):
        print(f"  {value:6.2f}   {name}")


def warn(message: str) -> None:
    """Print a remark on stderr."""
    print(f"manyheads: {message}", file=sys.stderr)
