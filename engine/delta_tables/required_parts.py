"""Parts of columns in which no value may be null: fields of structs, elements of lists, values of maps.

    required_parts(schema of Delta)          columns with such parts -> their types of Delta
    null_part(values, data_type, name)       the first part that has a null and may have none, such as ``s.x``

A field of a struct that is null itself is not there, and neither is an element of a list that is null.

Held by: tests/delta_tables/test_required_parts.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa


def required_parts(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types of the columns that have such parts, by their names."""
    return {each["name"]: each["type"] for each in schema["fields"] if _has_required(each["type"])}


def _has_required(data_type: Any) -> bool:
    if not isinstance(data_type, dict):
        return False
    match data_type["type"]:
        case "struct":
            return any(not each["nullable"] or _has_required(each["type"]) for each in data_type["fields"])
        case "array":
            return not data_type["containsNull"] or _has_required(data_type["elementType"])
        case "map":
            inner = data_type["keyType"], data_type["valueType"]
            return not data_type["valueContainsNull"] or any(map(_has_required, inner))
    return False


def null_part(values: pa.Array, data_type: Any, name: str) -> str | None:
    """Return the first part that has a null and may have none; None: there is no such null."""
    if not _has_required(data_type):
        return None
    values = values.drop_null()
    parts: list[tuple[str, pa.Array, Any, bool]] = []
    match data_type["type"]:
        case "struct":
            for each in data_type["fields"]:
                place = values.type.get_field_index(each["name"])
                if place >= 0:
                    found = values.field(place)
                    parts.append((f"{name}.{each['name']}", found, each["type"], each["nullable"]))
        case "array":
            parts.append((f"{name}.element", values.flatten(), data_type["elementType"], data_type["containsNull"]))
        case "map":
            begin, end = (values.offsets[place].as_py() for place in (0, -1))
            keys, items = (found[begin:end] for found in (values.keys, values.items))
            parts.append((f"{name}.key", keys, data_type["keyType"], True))
            parts.append((f"{name}.value", items, data_type["valueType"], data_type["valueContainsNull"]))
    for part, found, inner, may_be_null in parts:
        if not may_be_null and found.null_count:
            return part
        if (within := null_part(found, inner, part)) is not None:
            return within
    return None
