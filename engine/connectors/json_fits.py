"""Values of JSON beside files that are there: which kinds of types are read together.

Held by: tests/integration/test_appended_types.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.csv.added_rows import kind_of


def fits(known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
    """Return whether values of a type are read together with those that are there; False: that is seen by each."""
    kinds = [_json_kind(known), _json_kind(own)]
    if kinds[0] != kinds[1] and "null" not in kinds:
        return None
    if kinds[0] == "nested":
        return _fits_nested(known, own, schema_mode)
    is_text = kinds[0] == "text" and kind_of(own) == "text" and kind_of(known) == "moment"
    return not (is_text and schema_mode == "strict")


def _json_kind(data_type: pa.DataType) -> str:
    """Return the kind of JSON value that a type is written as."""
    kind = "number" if pa.types.is_duration(data_type) else kind_of(data_type)
    is_quoted = kind in ("moment", "time") or pa.types.is_decimal(data_type)
    return "text" if is_quoted else kind


def _fits_nested(known: pa.DataType, own: pa.DataType, schema_mode: str) -> bool | None:
    """Return whether lists are beside lists and objects beside objects, of what fits; members may be others."""
    are_lists = [not (pa.types.is_struct(each) or pa.types.is_map(each)) for each in (known, own)]
    if are_lists[0] != are_lists[1]:
        return None
    if are_lists[0]:
        within = [(known.value_type, own.value_type)]
    elif pa.types.is_struct(known) and pa.types.is_struct(own):
        names = [each.name for each in known if own.get_field_index(each.name) >= 0]
        within = [(known.field(name).type, own.field(name).type) for name in names]
    else:
        within = []
    return None if any(fits(one, other, schema_mode) is None for one, other in within) else True
