"""Arrow arrays as another type where nothing is lost: numbers as numbers, times as times, texts as texts.

    fitted(array, data_type) -> array         MisfitError names the first row that would lose something, and why

    integer   integer, float, decimal, ticks of a time     in range, a float that is equal
    float     float, integer, decimal                      in range, whole, back the same
    decimal   decimal, integer, float                      with all digits, back the same
    text      text, binary                                 binary: text that is UTF-8
    date      date, timestamp without zone                 timestamp: a date at midnight, where it has no zone
    timestamp of another unit or zone                      whole in the unit; without a zone: as UTC only
    lists, maps, structs of such                           structs by names; what is missing is null

Nothing else becomes anything else: a text is no number, a bool none either, and a struct has no members that the type
lacks. Rounding to the nearest float loses nothing here, infinity in place of a number does.

Held by: tests/records/test_array_fit.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.python_values import shown_value
from engine.records.value_check import MisfitError

_KINDS: Final[Sequence[tuple[str, Sequence[Callable[[pa.DataType], bool]]]]] = (
    ("bool", (pa.types.is_boolean,)),
    ("integer", (pa.types.is_integer,)),
    ("float", (pa.types.is_floating,)),
    ("decimal", (pa.types.is_decimal,)),
    ("text", (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)),
    (
        "bytes",
        (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_binary_view,
        ),
    ),
    ("date", (pa.types.is_date,)),
    ("timestamp", (pa.types.is_timestamp,)),
    ("time", (pa.types.is_time,)),
    ("duration", (pa.types.is_duration,)),
    ("list", (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)),
    ("map", (pa.types.is_map,)),
    ("struct", (pa.types.is_struct,)),
)
#: types that a kind may be converted to, besides itself
_BECOMES: Final = {
    "integer": ("float", "decimal", "date", "timestamp", "time", "duration"),
    "float": ("integer", "decimal"),
    "decimal": ("integer", "float"),
    "text": ("bytes",),
    "bytes": ("text",),
    "date": ("timestamp",),
    "timestamp": ("date",),
}
_WIDEST_DECIMAL: Final = 76
_TEXT_MAX: Final = 80


def fitted(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return an array as another type; MisfitError where a value would lose something."""
    source = values.type
    if source == data_type:
        return values
    if values.null_count == len(values):
        return pa.nulls(len(values), data_type)  # such as pandas' columns without a value, which are of floats
    if isinstance(source, pa.BaseExtensionType):
        return fitted(values.storage, data_type)
    if pa.types.is_dictionary(source):
        return fitted(values.dictionary_decode(), data_type)
    if pa.types.is_run_end_encoded(source):
        return fitted(pc.run_end_decode(values), data_type)
    if isinstance(data_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(data_type, fitted(values, data_type.storage_type))
    if pa.types.is_dictionary(data_type):
        return pc.cast(pc.dictionary_encode(fitted(values, data_type.value_type)), data_type)
    kind, wanted = _kind_of(source), _kind_of(data_type)
    if kind != wanted and wanted not in _BECOMES.get(kind, ()):
        raise MisfitError(f"it is {source}")
    if kind == "struct":
        return _fitted_struct(values, data_type)
    if kind in ("list", "map"):
        return _fitted_list(values, data_type)
    return _cast(values, _conversion(source, data_type, kind, wanted))


def _kind_of(data_type: pa.DataType) -> str:
    return next((kind for kind, tests in _KINDS if any(test(data_type) for test in tests)), str(data_type))


def _cast(values: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return values converted; the first one that cannot be is found by halving."""
    try:
        return convert(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        failure = error
    first, count = 0, len(values)
    while count > 1:
        half = count // 2
        found = _failure(values.slice(first, half), convert)
        if found is None:
            first, half = first + half, count - half
            found = _failure(values.slice(first, half), convert)
        if found is None:
            break
        count, failure = half, found
    reason, shown = str(failure).partition("\n")[0], repr(shown_value(values[first]))[:_TEXT_MAX]
    raise MisfitError(reason if reason.startswith(shown) else f"{shown}: {reason}", first) from failure


def _failure(values: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> pa.ArrowException | None:
    try:
        convert(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        return error
    return None


def _conversion(source: pa.DataType, data_type: pa.DataType, kind: str, wanted: str) -> Callable[[pa.Array], pa.Array]:
    """Return a conversion of values that raises ArrowInvalid where one loses something."""

    def cast(values: pa.Array) -> pa.Array:
        return pc.cast(values, data_type)

    if kind == wanted == "float":
        return lambda values: _within(values, cast(values))
    if kind == "integer" and wanted == "decimal":
        # Arrow asks for room for every integer of the type
        return lambda values: cast(pc.cast(values, pa.decimal256(_WIDEST_DECIMAL, data_type.scale)))
    if {kind, wanted} == {"float", "decimal"}:
        return lambda values: _same_back(values, cast(values))
    if kind == "timestamp" and wanted == "date":
        _check_zones(source.tz, None)
        return lambda values: _same_back(values, cast(values))
    if kind in ("date", "timestamp") and wanted == "timestamp":
        _check_zones(source.tz if kind == "timestamp" else None, data_type.tz)
    if pa.types.is_fixed_size_binary(data_type):
        return lambda values: pa.array(values.to_pylist(), data_type)
    return cast


def _check_zones(zone: str | None, wanted: str | None) -> None:
    if zone is not None and wanted is None:
        raise MisfitError(f"it has the time zone {zone}, and the type has none")
    if zone is None and wanted not in (None, "UTC"):
        raise MisfitError(f"it has no time zone, and the type has {wanted}")


def _within(values: pa.Array, found: pa.Array) -> pa.Array:
    """Return floats, none of which has become infinite."""
    is_beyond = pc.and_(pc.is_inf(found), pc.invert(pc.is_inf(values)))
    _refuse(values, is_beyond, f"is beyond the range of {found.type}")
    return found


def _same_back(values: pa.Array, found: pa.Array) -> pa.Array:
    """Return values that are the same when they are converted back."""
    _refuse(values, pc.not_equal(pc.cast(found, values.type, safe=False), values), f"is not the same as {found.type}")
    return found


def _refuse(values: pa.Array, is_wrong: pa.Array, reason: str) -> None:
    if pc.any(is_wrong).as_py():
        raise pa.ArrowInvalid(f"{pc.filter(values, is_wrong)[0]} {reason}")


def _fitted_struct(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    known = {field.name for field in data_type}
    unknown = [field.name for field in values.type if field.name not in known]
    if unknown:
        raise MisfitError(f"the type has no member {unknown[0]!r}")
    given = {field.name: part for field, part in zip(values.type, values.flatten(), strict=True)}
    parts = []
    for field in data_type:
        part = given.get(field.name)
        try:
            part = pa.nulls(len(values), field.type) if part is None else fitted(part, field.type)
        except MisfitError as error:
            raise MisfitError(f"in its member {field.name!r}: {error.reason}", error.index) from error
        if not field.nullable and part.null_count:
            missing = pc.and_(pc.is_null(part), pc.is_valid(values))
            if pc.any(missing).as_py():
                index = pc.index(missing, True).as_py()
                raise MisfitError(f"its member {field.name!r} is null, and not nullable", index)
        parts.append(part)
    return pa.StructArray.from_arrays(parts, fields=list(data_type), mask=pc.is_null(values))


def _fitted_list(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    if values.offset or values.null_count:
        # no values in front of the first list, or under nulls
        values = pc.take(values, pa.array(range(len(values)), pa.int64()))
    source, is_map = values.type, pa.types.is_map(values.type)
    if is_map:
        pairs = [(values.keys, data_type.key_field), (values.items, data_type.item_field)]
        parts = [_fitted_part(values, part, field.type) for part, field in pairs]
        inner = pa.StructArray.from_arrays(parts, fields=[data_type.key_field, data_type.item_field])
        return _refilled(values, data_type, inner)
    inner = _fitted_part(values, values.values, data_type.value_type)
    own = pa.list_(data_type.value_type)
    if pa.types.is_large_list(source):
        own = pa.large_list(data_type.value_type)
    elif pa.types.is_fixed_size_list(source):
        own = pa.list_(data_type.value_type, source.list_size)
    refilled = _refilled(values, own, inner)
    return refilled if own == data_type else _cast(refilled, lambda each: pc.cast(each, data_type))


def _refilled(values: pa.Array, data_type: pa.DataType, inner: Any) -> pa.Array:
    buffers = values.buffers()[: 1 if pa.types.is_fixed_size_list(data_type) else 2]
    return pa.Array.from_buffers(data_type, len(values), buffers, offset=values.offset, children=[inner])


def _fitted_part(values: pa.Array, part: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Convert the values in lists to another type; the row of an error is that of the list."""
    try:
        return fitted(part, data_type)
    except MisfitError as error:
        ends = pc.cumulative_sum(pc.fill_null(_lengths(values), 0))
        row = pc.sum(pc.cast(pc.less_equal(ends, error.index), pa.int64())).as_py()
        raise MisfitError(error.reason, -1 if error.index < 0 else row) from error


def _lengths(values: pa.Array) -> pa.Array:
    if pa.types.is_map(values.type):
        offsets = values.offsets
        return pc.subtract(offsets.slice(1), offsets.slice(0, len(values)))
    return pc.list_value_length(values)
