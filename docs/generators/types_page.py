"""The page of types, made from the table of types by ways that tests run (tests/types_table). Pure."""

from __future__ import annotations

import pyarrow as pa

from tests.types_table.sampled_types import FOREIGN, KEYS, TYPES, plain
from tests.types_table.table import ENDED, KEPT, NOT_IN_POLARS, NOT_ON_SPARK, REFUSED, WIDE

_HEAD = """# Types

A schema is a `pyarrow.Schema`. Values of every type of Arrow pass through filters, exchanges, sorts, joins and Python
functions unchanged. This page shows which formats and libraries change a type, and which refuse it. It is generated
from a table that the tests check, in memory and on disk.

* Encoded types are read as the type of their values: dictionaries, run-end encoded values, and views of texts, bytes
  and lists. The same holds for a type in `schema=`, in `cast` and in `udf`.
* If a format or library does not support a type, the error comes before the job runs, with the column, the type and
  what to do.
* In pandas and numpy, integers in a column with nulls are doubles. If a value has more digits than a double, pandas
  gets `Int64`, and numpy gets objects, so that no digit is lost. In numpy, nulls among floats are NaN, and timestamps
  with a zone are in UTC.
* A column of nulls only has the type null. As the argument of an aggregate it counts as int64.
* Values of union types are passed from a source to a result; no expression takes them.

"""
_LEGEND = """
`✓`: the same type, or the plain type of an encoded one. A name of a type: the same values in that type. `–`: refused.

| type | key | Parquet, records | ORC | CSV | JSON | Polars | Spark |
|---|---|---|---|---|---|---|---|
"""
_TAIL = """
* **key**: the type can be a key of a sort, a group, a join, `distinct` or a window, and is allowed in `min_`, `max_`,
  `==` and `is_in`. For other types, the error says what to compare instead: a field, an element, or the storage of an
  extension type.
* **records** keep two types that Parquet does not: `date64`, and timestamps in seconds.
* Arrow IPC keeps every type. Avro has the types of its own schema.
* **CSV** and **JSON** are read with `schema=`; without, [a sample decides](../guide/sources.md#csv).
* Bytes in JSON are written as text; bytes that are not UTF-8 end the job. On Spark, a decimal of more than 38 digits
  ends the job.
"""


def _cell(name: str, way: str) -> str:
    if name in REFUSED.get(way, ()):
        return "–"
    if name in ENDED.get(way, ()):
        return "UTF-8"
    kept = KEPT.get(way, {}).get(name)
    return "✓" if kept is None else f"`{_text(kept)}`"


def _text(data_type: pa.DataType) -> str:
    return str(data_type).replace("|", "\\|")


def _row(name: str) -> tuple[str, ...]:
    return (
        "✓" if name in KEYS else "–",
        _cell(name, "read_parquet"),
        _cell(name, "read_orc"),
        _cell(name, "write_csv"),
        _cell(name, "write_json"),
        "–" if name in NOT_IN_POLARS else "✓",
        "–" if name in NOT_ON_SPARK else "38 digits" if name in WIDE else "✓",
    )


def types_page() -> str:
    """Return the page; types of which the same is said share a row."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, array in {**TYPES, **FOREIGN}.items():
        if plain(array.type) == array.type:
            alike.setdefault(_row(name), []).append(f"`{_text(array.type)}`")
    rows = [f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in alike.items()]
    return _HEAD + _LEGEND.lstrip("\n") + "\n".join(rows) + "\n" + _TAIL
