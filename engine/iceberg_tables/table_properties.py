"""Properties of tables: those that one is made with, and those of one that is there.

    check_properties(properties, place)         of a call: ConfigurationError for values that mean nothing here
    check_same(properties, metadata, place)     of a call that adds to a table: they are the table's
    target_bytes(properties, place)             size of files
    measured_columns(properties, place)         number of columns that have statistics where no default is set
    codec_of(properties, place)                 ("gzip", 6): compression of files, and its level or None

Held by: tests/iceberg_tables/test_table_properties.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from engine.errors import ConfigurationError, NotYetSupportedError
from engine.parquet.writer import check_compression

_VERSION: Final = "format-version"
_VERSIONS: Final = ("1", "2", "3")
_FORMAT: Final = "write.format.default"
_SIZE: Final = "write.target-file-size-bytes"
_TARGET_BYTES: Final = 512 << 20
_CODEC: Final = "write.parquet.compression-codec"
_LEVEL: Final = "write.parquet.compression-level"
#: codecs by Iceberg's words; the last one is that of tables which say nothing
_CODECS: Final = ("uncompressed", "snappy", "gzip", "brotli", "lz4", "zstd")
#: begin of properties about statistics of columns
METRICS: Final = "write.metadata.metrics."
_MEASURED: Final = f"{METRICS}max-inferred-column-defaults"
#: modes of the statistics of a column
_TOLD: Final = re.compile(r"\s*(none|counts|full|truncate\(0*[1-9][0-9]*\))\s*", re.IGNORECASE)
#: columns that have statistics where the table does not say how many, as other writers have it
_MEASURED_MAX: Final = 100
_MODES: Final = ("copy-on-write", "merge-on-read")


def check_properties(properties: Mapping[str, Any], place: str) -> None:
    """Raise an error for properties of a table that is made, by which it could not be written."""
    version = str(properties.get(_VERSION, "2"))
    if version not in _VERSIONS:
        raise ConfigurationError(f"{place}: properties: {_VERSION!r} is {version!r}: choose {', '.join(_VERSIONS)}")
    target_bytes(properties, place)
    codec_of(properties, place)
    measured_columns(properties, place)
    if properties.get(_FORMAT, "parquet") != "parquet":
        raise NotYetSupportedError(f"{place}: making a table with {_FORMAT}={properties[_FORMAT]!r}; leave it out")
    for word in ("merge", "update", "delete"):
        name = f"write.{word}.mode"
        if properties.get(name, _MODES[0]) not in _MODES:
            raise ConfigurationError(
                f"{place}: properties: {name!r} is {properties[name]!r}: choose {' or '.join(_MODES)}"
            )


def check_same(properties: Mapping[str, Any], metadata: Any, place: str) -> None:
    """Raise ConfigurationError for properties that are not those of a table that is there."""
    known = {**metadata.properties, _VERSION: str(metadata.format_version)}
    others = [name for name, value in properties.items() if known.get(name) != str(value)]
    if others:
        name = others[0]
        raise ConfigurationError(
            f"{place}: properties= are those of a table that is made, and this one has {name!r} as"
            f" {known.get(name)!r}, not {properties[name]!r}"
        )


def target_bytes(properties: Mapping[str, Any], place: str) -> int:
    """Return the size after which the next file begins."""
    text = str(properties.get(_SIZE, _TARGET_BYTES))
    if not text.isdecimal() or not int(text):
        raise ConfigurationError(f"{place}: the property {_SIZE!r} is {text!r}: it is a number of bytes")
    return int(text)


def measured_columns(properties: Mapping[str, Any], place: str) -> int:
    """Return the number of columns with statistics where no default is set. Raises: ConfigurationError."""
    text = str(properties.get(_MEASURED, _MEASURED_MAX))
    if not text.isdecimal():
        raise ConfigurationError(f"{place}: the property {_MEASURED!r} is {text!r}: it is a number of columns")
    for name, value in properties.items():
        is_mode = name == f"{METRICS}default" or name.startswith(f"{METRICS}column.")
        if is_mode and not _TOLD.fullmatch(str(value)):
            said = "choose none, counts, full or truncate(16)"
            raise ConfigurationError(f"{place}: the property {name!r} is {value!r}: {said}")
    return int(text)


def codec_of(properties: Mapping[str, Any], place: str) -> tuple[str, int | None]:
    """Return the compression of files, and its level, None for its usual one."""
    word = str(properties.get(_CODEC, _CODECS[-1])).lower()
    if word not in _CODECS:
        raise ConfigurationError(f"{place}: the property {_CODEC!r} is {word!r}: choose one of {', '.join(_CODECS)}")
    codec, text = "none" if word == "uncompressed" else word, properties.get(_LEVEL)
    if text is None:
        return codec, None
    level = int(text) if str(text).isdecimal() else -1
    try:
        check_compression(codec, level)
    except ConfigurationError as error:
        known = str(error).rpartition(": ")[2]
        raise ConfigurationError(f"{place}: the property {_LEVEL!r} is {text!r}: {known}") from None
    return codec, level
