"""What the names of other libraries give, beside what their answers here give: columns, and the origin's values.

    POLARS, PANDAS: part, name, columns, the origin's code over ``x``, ``y``, the frame ``data`` and ``other``
    SPARK:          part, name, columns, SQL or the code of Spark over ``data``, and the values that it gives

Of an answer its first piece of code counts; of a data set its last column.
"""

from __future__ import annotations

import datetime
from typing import Any, Final

Columns = dict[str, list[Any]]

_DAY: Final = datetime.date(2026, 1, 1)
TIMES: Final[Columns] = {
    "x": [datetime.datetime(2026, 1, 1, 0, 0, 5, 123456), None, datetime.datetime(1969, 3, 31, 17, 0, 0, 1)],
    "y": [datetime.datetime(2025, 12, 31, 23), None, datetime.datetime(1969, 3, 31, 16, 59)],
}
_LENGTHS: Final[Columns] = {
    "x": [datetime.timedelta(days=3, seconds=5, microseconds=7), datetime.timedelta(days=-1, seconds=5), None]
}
_NUMBERS: Final[Columns] = {"x": [1.0, 2.0, 5.0, 9.0, -3.0], "y": [1.0, 0.5, 2.0, 3.0, 5.0]}
_SIGNED: Final[Columns] = {"x": [7, -7, 7, -7, 0, None], "y": [3, 3, -3, -3, 3, 3]}
_WHOLE: Final[Columns] = {"x": [2**53 + 1, 2**63 - 1, -7, None], "y": [1, 1, 3, 1]}
_ORDERED: Final[Columns] = {"x": [3, 1, 2]}
_WITH_NULL: Final[Columns] = {"x": [3, None, 1]}
_TEXTS: Final[Columns] = {"x": ["aab", "b", "", None, "ba1aa"]}
_CASES: Final[Columns] = {"x": ["ab", "AB", "Ab", "Ab Cd", "1", "", " ", "a b"]}
_PADDED: Final[Columns] = {"x": [" a\t ", "abcdefg", None]}
_LISTS: Final[Columns] = {"x": [[1, None, 2], [], None, [2]]}
_UPDATED: Final[Columns] = {"k": ["a", "b", "c"], "x": [1, None, 3]}

POLARS: Final = (
    *(("Expr.dt", name, TIMES, f"x.dt.{name}()") for name in ("microsecond", "nanosecond", "millisecond", "weekday")),
    *(
        ("Expr.dt", f"total_{unit}", _LENGTHS, f"x.dt.total_{unit}()")
        for unit in ("days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds")
    ),
    ("polars", "business_day_count", {"x": [_DAY], "y": [datetime.date(2026, 1, 10)]}, "pl.business_day_count(x, y)"),
    ("LazyFrame", "update", _UPDATED, "data.update(other, on='k')"),
    ("Expr", "skew", _NUMBERS, "x.skew()"),
    ("Expr", "kurtosis", _NUMBERS, "x.kurtosis()"),
    ("Expr", "log", {"x": [1.0, 8.0]}, "x.log()"),
    ("Expr", "is_close", {"x": [1e10, 1.0, 0.0, 2.0], "y": [1e10 + 1, 1.1, 1e-12, 2.0]}, "x.is_close(y)"),
    ("Expr", "arg_sort", _ORDERED, "x.arg_sort()"),
    ("polars", "arg_sort_by", _ORDERED, "pl.arg_sort_by(x)"),
    ("Expr", "mod", _SIGNED, "x % y"),
    ("Expr", "floordiv", _SIGNED, "x // y"),
    ("Expr", "rank", _ORDERED, "x.rank('average')"),
    ("Expr.str", "count_matches", _TEXTS, "x.str.count_matches('a+')"),
    ("Expr.str", "find", _TEXTS, "x.str.find('a')"),
    ("Expr.str", "replace_all", _TEXTS, "x.str.replace_all('a+', 'b')"),
    ("Expr.str", "to_titlecase", {"x": ["o'neil smith-JONES a1b"]}, "x.str.to_titlecase()"),
    ("Expr.list", "shift", _LISTS, "x.list.shift()"),
    ("DataFrame", "mean_horizontal", {"x": [1.0, None], "y": [2.0, 4.0]}, "pl.mean_horizontal(x, y)"),
    ("DataFrame", "sum_horizontal", {"x": [1.0, None], "y": [2.0, 4.0]}, "pl.sum_horizontal(x, y)"),
)

PANDAS: Final = (
    ("Series.dt", "microsecond", TIMES, "x.dt.microsecond"),
    ("Series.dt", "is_quarter_end", TIMES, "x.dt.is_quarter_end.where(x.notna(), None)"),
    ("Series.dt", "is_quarter_start", TIMES, "x.dt.is_quarter_start.where(x.notna(), None)"),
    (
        "Series and DataFrame",
        "update",
        _UPDATED,
        "data.set_index('k').join(other.set_index('k'), rsuffix='_r').pipe(lambda d: d['x_r'].fillna(d['x']))",
    ),
    *(
        ("Series and DataFrame", name, _NUMBERS, f"x.{name}(y)")
        for name in ("sub", "rsub", "div", "rdiv", "floordiv", "rfloordiv", "mod", "rmod", "pow")
    ),
    ("Series and DataFrame", "rpow", {"x": [1.0, 2.0], "y": [3.0, 4.0]}, "x.rpow(y)"),
    ("Series and DataFrame", "skew", _NUMBERS, "x.skew()"),
    ("Series and DataFrame", "kurt", _NUMBERS, "x.kurt()"),
    ("Series and DataFrame", "argsort", _ORDERED, "x.argsort()"),
    ("Series and DataFrame", "factorize", _ORDERED, "pd.Series(x.factorize(sort=True)[0])"),
    ("groupby", "ngroup", {"k": ["b", "a", "b"]}, "data.groupby('k').ngroup()"),
    *(("Series.str", name, _CASES, f"x.str.{name}()") for name in ("islower", "isupper", "istitle", "isspace")),
    ("Series.str", "rfind", _TEXTS, "x.str.rfind('a')"),
    ("Series.str", "count", {"x": ["aab", "b", "", None]}, "x.str.count('a')"),
)

_SORTED: Final = (
    *((name, [None, 1, 3]) for name in ("asc", "asc_nulls_first")),
    ("asc_nulls_last", [1, 3, None]),
    *((name, [3, 1, None]) for name in ("desc", "desc_nulls_last")),
    ("desc_nulls_first", [None, 3, 1]),
)
SPARK: Final = (
    *(
        (part, name, _WITH_NULL, f"data.orderBy(F.col('x').{name}())", values)
        for name, values in _SORTED
        for part in ("functions", "Column")
    ),
    ("DataFrame", "orderBy", _WITH_NULL, "data.orderBy('x')", [None, 1, 3]),
    ("functions", "try_add", _WHOLE, "try_add(x, y)", [2**53 + 2, None, -4, None]),
    ("functions", "try_subtract", _WHOLE, "try_subtract(x, y)", [2**53, 2**63 - 2, -10, None]),
    ("functions", "try_multiply", _WHOLE, "try_multiply(x, y)", [2**53 + 1, 2**63 - 1, -21, None]),
    ("functions", "try_mod", {**_SIGNED, "y": [3, 3, -3, -3, 3, 0]}, "try_mod(x, y)", [1, -1, 1, -1, 0, None]),
    ("functions", "pmod", _SIGNED, "pmod(x, y)", [1, 2, 1, -1, 0, None]),
    (
        "functions",
        "width_bucket",
        {"x": [-1.0, 0.0, 5.0, 10.0, 19.9, 20.0]},
        "width_bucket(x, 0, 20, 2)",
        [0, 1, 1, 2, 2, 3],
    ),
    ("functions", "skewness", _NUMBERS, "skewness(x)", [0.146300022521]),
    ("functions", "kurtosis", _NUMBERS, "kurtosis(x)", [-0.975370061759]),
    (
        "functions",
        "substring_index",
        {"x": ["a.b.c", "x", "", None]},
        "substring_index(x, '.', 2)",
        ["a.b", "x", "", None],
    ),
    ("functions", "instr", {"x": ["ba", "b", None]}, "instr(x, 'a')", [2, 0, None]),
    ("functions", "trim", _PADDED, "trim(x)", ["a\t", "abcdefg", None]),
    ("functions", "lpad", {"x": ["ab", "abcdefg"]}, "lpad(x, 5, '0')", ["000ab", "abcde"]),
    ("functions", "rpad", {"x": ["ab", "abcdefg"]}, "rpad(x, 5, ' ')", ["ab   ", "abcde"]),
    ("functions", "mask", {"x": ["AbC-12"]}, "mask(x)", ["XxX-nn"]),
    ("functions", "datediff", TIMES, "datediff(x, y)", [1, None, 0]),
    ("functions", "timestamp_diff", TIMES, "timestampdiff(hour, x, y)", [-1, None, 0]),
    ("functions", "dayofweek", {"x": [datetime.date(2026, 1, 4), _DAY]}, "dayofweek(x)", [1, 5]),
    ("functions", "from_unixtime", {"x": [1_700_000_000]}, "from_unixtime(x)", ["2023-11-14 22:13:20"]),
    ("functions", "array_remove", _LISTS, "array_remove(x, 1)", [[None, 2], [], None, [2]]),
    ("DataFrame", "sampleBy", {"k": ["b", "c"], "x": [1, 2]}, "data.sampleBy('k', {'a': 0.1}, 1)", []),
)
