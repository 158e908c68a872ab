"""Which functions of the table SQL reaches, and why it reaches the others not.

On Spark each function runs: where Spark has no function that means exactly the same, the engine computes it there, in a
fragment (``engine.dataframes.native_expressions``).

Held by: tests/docs/test_function_languages.py
"""

from __future__ import annotations

from typing import Final

#: the reason that SQL does not reach a function, by the function's name in the table
NOT_IN_SQL: Final[dict[str, str]] = {
    "between": "`a BETWEEN b AND c` is planned as `a >= b AND a <= c`",
    "fill_null": "`coalesce(a, b)`, which gives the common type",
    "clip": "`least(greatest(a, low), high)`",
    "bit_not": "`bit_not(a)` is planned as `xor(a, -1)`",
    "str_concat": "`a || b` and `concat(a, b)` are planned as a join of texts",
    "str_capitalize": "a method of Python's texts, which SQL has not",
    "str_strip_prefix": "`CASE WHEN starts_with(s, p) THEN substr(s, length(p) + 1) ELSE s END`",
    "str_strip_suffix": "`CASE WHEN ends_with(s, p) THEN left(s, length(s) - length(p)) ELSE s END`",
    "str_json_parse": "a type of the result is a Python object; `json_get` is there",
    "require": "a query has no errors of its own",
    "str_to_date": "`CAST(strptime(s, '%Y-%m-%d') AS DATE)`, which `to_date(s, '%Y-%m-%d')` is",
    "replace": "`CASE x WHEN 1 THEN 'a' ELSE x END`; `replace(s, a, b)` is of texts",
    "str_to_integer": "`CAST(s AS BIGINT)`, of base 10",
    "dt_is_business_day": "`isodow(d) < 6`, beside a table of holidays",
    "dt_add_business_days": "SQL has no calendar of holidays",
    "dt_business_day_count": "SQL has no calendar of holidays",
    "struct_rename_fields": "`{'b': s.a}`",
    "struct_drop": "`{'a': s.a}`, the fields that stay",
    "dt_ordinal_day": "`dayofyear(d)` is planned from the first day of the year",
    "dt_first_day": "`date_trunc('month', d)`",
    "dt_date": "`CAST(t AS DATE)`",
    "dt_time": "`CAST(t AS TIME)`",
    "row_place": "the place of a row in its file is a column of the source",
}

#: the reason that the translation for Spark has no case for an operator of a plan
NOT_ON_SPARK: Final[dict[str, str]] = {
    "PartialAggregate": "the optimizer makes it, behind the point where a plan is translated",
    "Sink": "engine.dataframes.outputs writes what a plan gives",
}
#: the reason that no query of SQL has an operator
OPERATORS_NOT_IN_SQL: Final[dict[str, str]] = {
    "PythonFunction": "functions of Python are called on data sets",
    "GroupReduce": "functions of Python are called on data sets",
    "CoGroup": "functions of Python are called on data sets",
    "PartialAggregate": "the optimizer makes it",
    "Partition": "where rows lie is asked on data sets",
    "Sink": "COPY and INSERT INTO are statements, which end in one",
}
