"""Checks a document against one of our JSON Schemas: the few keywords that they use, and no library for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": int | float,
    "null": type(None),
}


def load(name: str) -> dict[str, Any]:
    """The documented schema of that name, such as "ledger-1"."""
    path = Path(__file__).parents[1] / "docs" / "reference" / f"{name}.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(schema, dict)
    return schema


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> list[str]:
    """What in the value the schema does not allow."""
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    if "oneOf" in schema:
        fitting = [branch for branch in schema["oneOf"] if not problems(value, branch, root, at)]
        return [] if len(fitting) == 1 else [f"{at}: fits {len(fitting)} of the branches"]
    if "const" in schema:
        return [] if value == schema["const"] else [f"{at}: is not {schema['const']}"]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{at}: {value} is none of {schema['enum']}"]
    if not isinstance(value, TYPES[schema["type"]]) or isinstance(value, bool):
        return [f"{at}: not of type {schema['type']}"]
    if isinstance(value, dict):
        return _in_object(value, schema, root, at)
    if isinstance(value, list):
        return [
            found
            for position, item in enumerate(value)
            for found in problems(item, schema["items"], root, f"{at}[{position}]")
        ]
    if isinstance(value, str):
        return [f"{at}: too short"] if len(value) < schema.get("minLength", 0) else []
    if value is not None and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return [f"{at}: {value} out of bounds"]
    return []


def _in_object(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], at: str) -> list[str]:
    allowed = schema["properties"]
    found = [f"{at}: lacks {key}" for key in schema["required"] if key not in value]
    found += [f"{at}: {key} is not allowed" for key in value if key not in allowed]
    for key in value.keys() & allowed.keys():
        found += problems(value[key], allowed[key], root, f"{at}.{key}")
    return found
