"""The rules that a table sets its writers by its properties, its features, and the metadata of its columns.

    check_writable(table, place, call)          of a table that is there: NotYetSupportedError for what is not done here
    check_made(call, properties, names)         of one that is made: properties that are honoured, and their values
    check_columns(names, call)                  names that differ in case alone
    check_default(schema, name, call)           of a column that rows lack
    indexed_columns(configuration, call)        (32, ()): columns of which files have statistics
    is_append_only(configuration)               whether no row may go

Properties of a table that is made fall into three kinds: those that are rules and are followed, sizes and times
that are kept for other programs, and all others, which are refused by name.

Source: the Delta transaction log protocol, "Requirements for Writers".
Held by: tests/delta_tables/test_table_rules.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from engine.delta_tables.table_write import INDEXED_MAX
from engine.errors import ConfigurationError, NotYetSupportedError, PlanError, SchemaError

_CALL: Final = "write_delta"
_WRITER_VERSION_MAX: Final = 7
#: features that a writer must know, and this one does, or has none of in its files
_WRITER_FEATURES: Final = frozenset(
    {"appendOnly", "invariants", "checkConstraints", "generatedColumns", "identityColumns", "allowColumnDefaults"}
    | {"changeDataFeed", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "domainMetadata"}
    | {"variantType"}
)
#: metadata of columns that a writer has to compute or to check
_OF_COLUMNS: Final = {
    "delta.generationExpression": "is generated",
    "delta.identity.start": "is an identity",
    "delta.invariants": "has an invariant",
}
#: key of a column's default, in its metadata
_DEFAULT: Final = "CURRENT_DEFAULT"
_APPEND_ONLY: Final = "delta.appendOnly"
_FEED: Final = "delta.enableChangeDataFeed"
#: columns that the change data feed has beside those of the table
_OF_FEED: Final = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})

_BOOL: Final = "true|false", "true or false"
_COUNT: Final = "[1-9][0-9]*", "a number from 1 on"
_INTERVAL: Final = (
    "interval [0-9]+ (nanosecond|microsecond|millisecond|second|minute|hour|day|week)s?",
    "a time such as 'interval 30 days'",
)
_INDEXED_COUNT: Final = "delta.dataSkippingNumIndexedCols"
_INDEXED: Final = "delta.dataSkippingStatsColumns"
#: a name of a column in such a list
_NAME: Final = "(?:`[^`]+`|[^`, ][^`,]*)"
#: pattern of the value, and words for it, of properties that a table may be made with
_PROPERTIES: Final[dict[str, tuple[str, str]]] = {
    _APPEND_ONLY: _BOOL,
    _FEED: _BOOL,
    "delta.enableDeletionVectors": _BOOL,
    "delta.checkpointInterval": _COUNT,
    "delta.columnMapping.mode": ("none", "none: columns of files have the names of the table's"),
    "delta.checkpointPolicy": ("classic", "classic: checkpoints of the second kind are made by no library here"),
    "delta.isolationLevel": ("Serializable|WriteSerializable", "Serializable or WriteSerializable"),
    "delta.checkpoint.writeStatsAsJson": _BOOL,
    "delta.checkpoint.writeStatsAsStruct": _BOOL,
    "delta.logRetentionDuration": _INTERVAL,
    "delta.deletedFileRetentionDuration": _INTERVAL,
    "delta.setTransactionRetentionDuration": _INTERVAL,
    "delta.enableExpiredLogCleanup": _BOOL,
    _INDEXED_COUNT: ("-1|[0-9]+", "a number from -1 on"),
    _INDEXED: (f" *{_NAME} *(, *{_NAME} *)*", "names of columns, such as 'a, `b.c`'"),
    "delta.targetFileSize": (".+", "a size"),
    "delta.tuneFileSizesForRewrites": _BOOL,
    "delta.autoOptimize.autoCompact": ("true|false|auto|legacy", "true, false, auto or legacy"),
    "delta.autoOptimize.optimizeWrite": _BOOL,
    "delta.randomizeFilePrefixes": _BOOL,
    "delta.randomPrefixLength": _COUNT,
}


def check_writable(table: Any, place: str, call: str = _CALL) -> None:
    """Raise NotYetSupportedError for what writers of a table must do, and this one does not."""
    protocol, configuration = table.protocol(), table.metadata().configuration
    unknown = sorted(set(protocol.writer_features or ()) - _WRITER_FEATURES)
    if protocol.min_writer_version > _WRITER_VERSION_MAX:
        unknown = [f"version {protocol.min_writer_version} of the protocol for writers"]
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        unknown.append("columnMapping")
    unknown += [key for key in configuration if key.startswith("delta.constraints.")]
    for name, metadata in _fields(json.loads(table.schema().to_json()), ""):
        unknown += [f"column {name!r}, which {word}" for key, word in _OF_COLUMNS.items() if key in metadata]
    if unknown:
        raise NotYetSupportedError(f"{call}({place!r}): writing a table with {', '.join(unknown)}")


def _fields(data_type: Any, outer: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and the metadata of each field of a type, at every depth."""
    if not isinstance(data_type, dict):
        return
    for field in data_type.get("fields", ()):
        yield outer + field["name"], field.get("metadata") or {}
        yield from _fields(field["type"], f"{outer}{field['name']}.")
    for inner in ("elementType", "keyType", "valueType"):
        yield from _fields(data_type.get(inner), outer)


def is_append_only(configuration: Mapping[str, str]) -> bool:
    """Return whether a table keeps the rows that it has."""
    return configuration.get(_APPEND_ONLY, "").lower() == "true"


def check_removal(configuration: Mapping[str, str], place: str, call: str) -> None:
    """Raise PlanError where no row of a table may change or go."""
    if is_append_only(configuration):
        raise PlanError(
            f"{call}({place!r}): the table has {_APPEND_ONLY}, by which rows are added to it and none are changed or"
            " removed; add rows, or set the property to 'false' first"
        )


def check_made(call: str, properties: Mapping[str, str], names: Iterable[str]) -> None:
    """Raise an error for properties of a table that is made which are not honoured, and for values of others."""
    for name, value in properties.items():
        if name not in _PROPERTIES:
            raise NotYetSupportedError(
                f"{call}: making a table with the property {name!r}; the guide's page of Delta tables has those that"
                " may be given"
            )
        pattern, words = _PROPERTIES[name]
        if re.fullmatch(pattern, value) is None:
            raise ConfigurationError(f"{call}: properties: {name!r} is {value!r}; here it may be {words}")
    names = tuple(names)
    unknown = [name for name in indexed_columns(properties, call)[1] if name not in map(str.lower, names)]
    if unknown:
        said = f"{unknown[0]!r} is none of the columns {', '.join(names)}; statistics are those of whole columns"
        raise ConfigurationError(f"{call}: properties: {_INDEXED!r}: {said}")
    taken = sorted(_OF_FEED & {*names}) if properties.get(_FEED) == "true" else []
    if taken:
        raise SchemaError(f"{call}: column {taken[0]!r} has a name of the change data feed ({_FEED}); rename it")


def indexed_columns(configuration: Mapping[str, str], call: str) -> tuple[int, tuple[str, ...]]:
    """Return the number of first columns with statistics in files, -1 for all, and others by name in lower case.

    Raises: ConfigurationError for values that mean nothing.
    """
    for name in (_INDEXED, _INDEXED_COUNT):
        pattern, words = _PROPERTIES[name]
        if name in configuration and re.fullmatch(pattern, configuration[name]) is None:
            raise ConfigurationError(f"{call}: the property {name!r} is {configuration[name]!r}; it is {words}")
    if _INDEXED in configuration:
        found = re.findall(_NAME, configuration[_INDEXED])
        return 0, tuple(name.strip().strip("`").lower() for name in found)
    return int(configuration.get(_INDEXED_COUNT, INDEXED_MAX)), ()


def check_columns(names: Iterable[str], call: str) -> None:
    """Raise SchemaError for names of columns that differ in case alone, which are one to Delta."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if other != name:
            raise SchemaError(f"{call}: columns {other!r} and {name!r} differ in case alone, which Delta has not")


def check_default(schema: Mapping[str, Any], name: str, call: str) -> None:
    """Raise SchemaError where a column that rows lack has a default, which would have to be computed."""
    field = next(each for each in schema["fields"] if each["name"] == name)
    default = (field.get("metadata") or {}).get(_DEFAULT)
    if default is not None:
        raise SchemaError(f"{call}: column {name!r} is {default} by default, and the rows lack it; say its value")
