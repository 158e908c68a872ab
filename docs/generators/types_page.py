"""The page of types, made from the table of types by ways that tests run (tests/types_table). Pure."""

from __future__ import annotations

import pyarrow as pa

from tests.types_table.sampled_types import FOREIGN, KEYS, TYPES, plain
from tests.types_table.table import ENDED, KEPT, NOT_IN_POLARS, NOT_ON_SPARK, REFUSED, WIDE

_HEAD = """# Types

A schema is a `pyarrow.Schema`. Values of every type of Arrow go through filters, exchanges, sorts, joins and Python
functions as they are; this page says where one becomes another, and where it is refused. It is made from the table that
the tests run: each type on each way, in memory and over the disk.

* What Arrow encodes is taken as the type of its values: dictionaries and runs, views of texts, bytes and lists.
  That holds for a type in `schema=`, in `cast` and in `udf`, too.
* A way that does not take a type says so before the job runs, with the column, the type and what to do.
* In pandas and numpy, integers beside nulls are doubles. Where a value has more digits than a double, pandas has
  `Int64` and numpy objects, so that no digit is lost. numpy has no nulls among floats; they are NaN there. In numpy,
  moments with a zone are those of UTC.
* A column of nothing but nulls has the type null. As the argument of an aggregate it counts as int64.
* Unions of types pass from a source to a result, and nothing is computed of them.

"""
_LEGEND = """
`✓` the same type, or the plain one of an encoded type; a name of a type: that one, with the same values; `–` refused.

| type | key | Parquet, records | ORC | CSV | JSON | Polars | Spark |
|---|---|---|---|---|---|---|---|
"""
_TAIL = """
* **key**: of a sort, a group, a join, `distinct`, a window; and `min_`, `max_`, `==`, `is_in`. Errors say what to
  compare instead: a field, an element, or what an extension type stores.
* **records** keep what Parquet does not: `date64`, and units of seconds.
* Arrow IPC keeps every type. Avro has the types of its own schema.
* **CSV** and **JSON** are read with `schema=`; without, [a sample decides](../guide/sources.md#csv).
* Bytes in JSON are those of a text in UTF-8; others end the job. So does a decimal of more than 38 digits on Spark.
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
