"""The JSON Schema of the view, as tests check what is printed against it."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

import manyheads.lens.view

PATH = Path(manyheads.lens.view.__file__).with_name("view.schema.json")
SCHEMA = json.loads(PATH.read_text(encoding="utf-8"))


def errors(view: Any) -> list[str]:
    """What is wrong with a view: the innermost reasons, where several ways are right."""
    kind = view.get("kind") if isinstance(view, dict) else None
    part = (
        {**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{kind}"}]} if kind in ("text", "image") else SCHEMA
    )
    return [
        f"{error.json_path}: {error.message[:200]}"
        for found in Draft202012Validator(part).iter_errors(view)
        for error in (found.context or [found])
    ]
