"""SqlInfo: what the server says of itself, by the numbers of Flight SQL; and the types of values, as ODBC has them.

    sql_info([], ...)    all that is known: (info_name, value of a union)       type_info(None)    a row for each type

Source: Apache Arrow, format/FlightSql.proto (enum SqlInfo, enum XdbcDataType, CommandGetXdbcTypeInfo)
Held by: tests/flight_sql/test_catalog.py
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from engine import __version__

_VALUE: Final = pa.dense_union(
    [
        pa.field("string_value", pa.string()),
        pa.field("bool_value", pa.bool_()),
        pa.field("bigint_value", pa.int64()),
        pa.field("int32_bitmask", pa.int32()),
        pa.field("string_list", pa.list_(pa.field("item", pa.string()))),
        pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.field("item", pa.int32())))),
    ]
)
SQL_INFO: Final = pa.schema(
    [pa.field("info_name", pa.uint32(), nullable=False), pa.field("value", _VALUE, nullable=False)]
)
_TEXT, _BOOL, _INT32 = 0, 1, 3
#: numbers of SqlInfo, with the member of the union and the value
_KNOWN: Final[dict[int, tuple[int, Any]]] = {
    0: (_TEXT, "Drey"),
    1: (_TEXT, __version__),
    2: (_TEXT, pa.__version__),
    4: (_BOOL, True),  # SQL
    5: (_BOOL, False),  # Substrait
    8: (_INT32, 0),  # no transactions
    9: (_BOOL, True),  # cancel
    10: (_BOOL, True),  # bulk ingestion
    11: (_BOOL, False),  # transactions in it
    500: (_BOOL, False),  # CREATE and DROP of catalogs, schemas, tables
    501: (_BOOL, False),
    502: (_BOOL, True),
    503: (_INT32, 1),  # names: any case
    504: (_TEXT, '"'),
    505: (_INT32, 1),
    506: (_BOOL, True),
    507: (_INT32, 3),  # nulls at the end
    513: (_TEXT, "\\"),
    515: (_BOOL, True),
    516: (_BOOL, True),
    518: (_BOOL, True),
    519: (_BOOL, False),
    520: (_BOOL, True),
    521: (_BOOL, True),
    522: (_INT32, 0b11),  # GROUP BY
    523: (_BOOL, True),
    525: (_INT32, 0b111),
    526: (_INT32, 0b1),
    528: (_INT32, 2),  # outer joins: all
    529: (_TEXT, "schema"),
    531: (_TEXT, "catalog"),
    532: (_BOOL, True),
    536: (_BOOL, False),  # SELECT FOR UPDATE
    537: (_BOOL, False),  # procedures
    538: (_INT32, 0b1111),  # subqueries
    539: (_BOOL, True),
    540: (_INT32, 0b11),  # UNION and UNION ALL
    562: (_INT32, 0),  # no isolation: no transactions
    563: (_BOOL, False),
    572: (_BOOL, False),
    573: (_BOOL, False),
    576: (_BOOL, False),
}
_READ_ONLY: Final = 3


def sql_info(wanted: list[int], *, is_read_only: bool) -> pa.Table:
    """Return the values of numbers, all of them for an empty list; unknown numbers are left out."""
    known = {**_KNOWN, _READ_ONLY: (_BOOL, is_read_only)}
    found = [(number, *known[number]) for number in wanted or sorted(known) if number in known]
    members: list[list[Any]] = [[] for _ in range(_VALUE.num_fields)]
    offsets = []
    for _, member, value in found:
        offsets.append(len(members[member]))
        members[member].append(value)
    union = pa.UnionArray.from_dense(
        pa.array([member for _, member, _ in found], pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(values, field.type) for values, field in zip(members, _VALUE, strict=True)],
        [field.name for field in _VALUE],
    )
    names = pa.array([number for number, _, _ in found], pa.uint32())
    return pa.Table.from_arrays([names, union.cast(_VALUE)], schema=SQL_INFO)


_INT, _BOOLEAN = pa.int32(), pa.bool_()
_NOT_NULL: Final = ("type_name", "data_type", "nullable", "case_sensitive", "searchable", "fixed_prec_scale")
TYPE_INFO: Final = pa.schema(
    [
        pa.field(name, kind, nullable=name not in (*_NOT_NULL, "sql_data_type"))
        for name, kind in {
            "type_name": pa.string(),
            "data_type": _INT,
            "column_size": _INT,
            "literal_prefix": pa.string(),
            "literal_suffix": pa.string(),
            "create_params": pa.list_(pa.field("item", pa.string(), nullable=False)),
            "nullable": _INT,
            "case_sensitive": _BOOLEAN,
            "searchable": _INT,
            "unsigned_attribute": _BOOLEAN,
            "fixed_prec_scale": _BOOLEAN,
            "auto_increment": _BOOLEAN,
            "local_type_name": pa.string(),
            "minimum_scale": _INT,
            "maximum_scale": _INT,
            "sql_data_type": _INT,
            "datetime_subcode": _INT,
            "num_prec_radix": _INT,
            "interval_precision": _INT,
        }.items()
    ]
)
#: names of types with their number of XDBC, size, quotes, generic number and subcode of times, and radix
_TYPE_ROWS: Final = (
    ("TINYINT", -6, 3, "", -6, None, 10),
    ("BIGINT", -5, 19, "", -5, None, 10),
    ("VARBINARY", -3, None, "'", -3, None, None),
    ("BOOLEAN", -7, 1, "", -7, None, None),
    ("DECIMAL", 3, 38, "", 3, None, 10),
    ("INTEGER", 4, 10, "", 4, None, 10),
    ("SMALLINT", 5, 5, "", 5, None, 10),
    ("REAL", 7, 24, "", 7, None, 2),
    ("DOUBLE", 8, 53, "", 8, None, 2),
    ("VARCHAR", 12, None, "'", 12, None, None),
    ("DATE", 91, 10, "'", 9, 1, None),
    ("TIME", 92, 15, "'", 9, 2, None),
    ("TIMESTAMP", 93, 26, "'", 9, 3, None),
)


def type_info(wanted: int | None) -> pa.Table:
    """Return the types, or the one with a number."""
    rows = []
    for name, number, size, quote, generic, subcode, radix in sorted(_TYPE_ROWS, key=lambda row: (row[1], row[0])):
        if wanted in (None, number):
            rows.append(
                {
                    "type_name": name,
                    "data_type": number,
                    "column_size": size,
                    "literal_prefix": quote or None,
                    "literal_suffix": quote or None,
                    "create_params": ["precision", "scale"] if name == "DECIMAL" else None,
                    "nullable": 1,
                    "case_sensitive": name == "VARCHAR",
                    "searchable": 3,
                    "unsigned_attribute": False if radix else None,
                    "fixed_prec_scale": False,
                    "auto_increment": False if radix else None,
                    "local_type_name": name,
                    "minimum_scale": 0 if radix == 10 else None,
                    "maximum_scale": 38 if name == "DECIMAL" else 0 if radix == 10 else None,
                    "sql_data_type": generic,
                    "datetime_subcode": subcode,
                    "num_prec_radix": radix,
                    "interval_precision": None,
                }
            )
    return pa.Table.from_pylist(rows, schema=TYPE_INFO)
