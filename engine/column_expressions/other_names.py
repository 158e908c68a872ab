"""Names that pandas, Polars and Spark have for methods with another name here: the error tells which to use.

    data.groupby("k")      AttributeError: a data set has no 'groupby': write group_by(keys).agg(name=...)
    col("x").isin([1])     AttributeError: an expression has no 'isin': write is_in(values)
    data.price             AttributeError: a data set has no 'price': write col('price') or data['price']
    col("x").list.lenght   AttributeError: .list has no 'lenght': did you mean 'length'?
    col("x").upper         AttributeError: an expression has no 'upper': it is behind .str: .str.upper(...)
    from drey import mean  ImportError: cannot import name 'mean' from 'drey': write avg

    class DataSet(HasOtherNames): _kind, _other_names = "a data set", ON_DATA_SETS

What the rows here have not, ``engine.foreign_names`` has: all names of Polars, PySpark and pandas.

It stays an AttributeError, so ``hasattr`` and checks for protocols work as before. Type checkers know
nothing of it: to them what is not there is not there.

Held by: tests/api/test_other_names.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

from engine.near_names import did_you_mean, near_names


def _by_name(*rows: tuple[str, str]) -> dict[str, str]:
    return {name: advice for names, advice in rows for name in names.split()}


ON_DATA_SETS: Final = _by_name(
    ("order_by sort_by", "sort(by, descending=...)"),
    ("with_column mutate", "with_columns(name=expression)"),
    ("merge_asof", "asof_join(other, on=..., by=...)"),
    ("concat append", "union(other)"),
    ("minus", "except_(other, all=...)"),
    ("drop_na", "drop_nulls(subset)"),
    ("profile", "explain(analyze=True)"),
    ("fetch", "head(n)"),
    ("approx_n_unique", "agg(n=approx_count_distinct('x'))"),
    ("flatMap", "flat_map(fn, schema)"),
    ("mapPartitions", "map_partition(fn, schema)"),
    ("with_row_count", "with_row_index(name)"),
    ("to_dict_list", "to_dicts()"),
    ("groupby_dynamic", "group_by_dynamic(index, every)"),
)

_AGGREGATE: Final = "an aggregate such as sum_('x') or avg('x') in group_by(...).agg(name=...), or .over(...) a window"
_FUNCTIONS: Final = (
    *((name, f"{name}_(x)") for name in ("sum", "max", "min")),
    *((name, f"{name}(x)") for name in ("avg", "count", "median", "first", "last")),
    *(("mean", "avg(x)"), ("std", "stddev(x)"), ("var", "variance(x)"), ("quantile", "quantile(x, 0.9)")),
    *((name, "count_distinct(x)") for name in ("n_unique", "nunique")),
)

ON_EXPRESSIONS: Final = _by_name(
    ("isnan", "is_nan()"),
    ("map_dict", "replace({old: new}) or replace_strict({old: new}, default)"),
    ("xxhash64", "hash64(col('x'))"),
    ("sha2", "sha256() or sha512()"),
    ("soundex", "str.jaro_winkler(other) or str.levenshtein(other); soundex is not there, it fits English names alone"),
    *(
        (name, f"{function} in group_by(...).agg(name=...), or {function}.over(...) a window")
        for name, function in _FUNCTIONS
    ),
    ("over", _AGGREGATE),
    *(
        (names, f"{names.split()[0]}(x).over(partition_by, order_by)")
        for names in (
            *("diff", "pct_change", "cum_sum cumsum", "cum_prod cumprod", "cum_min cummin", "cum_max cummax"),
            *("cum_count", "interpolate", "ewm_mean ewm", "forward_fill ffill pad", "backward_fill bfill"),
        )
    ),
    *(
        (f"rolling_{each}", f"rolling_{each}(x, 3).over(partition_by, order_by)")
        for each in ("sum", "mean", "median", "min", "max", "std", "var")
    ),
    ("rolling_quantile", "rolling_quantile(x, 0.9, 3).over(partition_by, order_by)"),
    ("startsWith", ".str.starts_with(text)"),
    ("endsWith", ".str.ends_with(text)"),
    ("isBetween", "between(low, high)"),
)

ON_TEXTS: Final = _by_name(
    ("trim", "strip()"),
    ("substr substring", "slice(start, stop)"),
    ("rlike", "matches(pattern)"),
    ("soundex", "jaro_winkler(other) or levenshtein(other); soundex is not there, it fits English names alone"),
    ("jaro_winkler_similarity", "jaro_winkler(other)"),
    ("octet_length", "len_bytes()"),
    ("json_extract get_json_object", "json_get(path)"),
)

_DAYS: Final = "x // datetime.timedelta(days=1)"
_SECONDS: Final = "x % datetime.timedelta(days=1) // datetime.timedelta(seconds=1)"
_MICROSECONDS: Final = "x % datetime.timedelta(seconds=1) // datetime.timedelta(microseconds=1)"

ON_TIMES: Final = _by_name(
    ("weekofyear", "week() and iso_year()"),
    ("trunc", "truncate(unit)"),
    ("format", "strftime(format)"),
    ("bucket time_bucket", "truncate('15 minutes')"),
    ("weekday_name", "day_name()"),
    ("days", f"{_DAYS} of a duration, day() of a date"),
    ("seconds", f"{_SECONDS} of a duration, second() of a time"),
    ("microseconds", f"{_MICROSECONDS} of a duration, microsecond() of a time"),
    ("components", f"{_DAYS}, {_SECONDS} and the like of a duration"),
)

ON_LISTS: Final = _by_name(
    ("size lengths", "length()"),
    ("array_contains", "contains(value)"),
    ("nunique", "distinct().list.length()"),
    ("average avg", "mean()"),
    ("array_join to_string", "join(separator)"),
    ("map apply", "transform(lambda x: ...)"),
    ("array_union", "union(other)"),
    ("array_intersect", "intersection(other)"),
    ("array_except", "difference(other)"),
    ("index_of array_position", "position(value)"),
    ("forall", "all(condition)"),
    ("aggregate fold", "reduce(function, initial)"),
    ("arrays_zip", "zip(other, names=[...])"),
    ("array_compact", "drop_nulls()"),
    ("element_at getItem", "get(index)"),
    ("append extend", "concat(other)"),
)

ON_MAPS: Final = _by_name(
    ("getItem element_at", "get(key)"),
    ("items", "entries()"),
    ("explode", "explode(column) of the data set"),
    ("len size", "length()"),
    ("contains_key containsKey", "contains(key)"),
    ("map_filter", "filter(condition)"),
    ("map_keys", "keys()"),
    ("map_values", "values()"),
)

ON_STRUCTS: Final = _by_name(
    ("withField with_field", "with_fields(name=value)"),
    ("dropFields", "drop(names)"),
    ("rename", "rename_fields({'old': 'new'})"),
)

ON_ENVIRONMENTS: Final = _by_name(
    ("scan_parquet", "read_parquet(path)"),
    ("scan_csv", "read_csv(path)"),
    ("scan_ndjson read_ndjson read_jsonl", "read_json(path)"),
    ("scan_ipc read_feather", "read_ipc(path)"),
    ("read_sql read_database_uri", "read_database(query, uri)"),
    ("from_records", "from_rows(rows, schema), or from_dicts(rows)"),
    ("createDataFrame parallelize", "from_rows(rows, schema), or from_arrow(frame)"),
    ("createOrReplaceTempView create_table", "register(name, data_set)"),
    ("query", "sql(query)"),
    ("table", "tables[name]"),
    ("run submit start", "execute()"),
    ("range", "sequence(0, 10)"),
    ("udf", "register_function('f', udf('int64')(f)), for SQL"),
    ("conf", "configuration, which Environment(config={'parallelism.default': 2}) sets"),
    ("sparkContext newSession builder", "Environment(config={'parallelism.default': 2})"),
    ("catalog", "tables, or attach('lake', catalog)"),
    ("readStream streams", "no: streams are out of scope"),
    ("stop", "close()"),
)

ON_GROUPS: Final = _by_name(
    ("flatMapGroups", "reduce(fn, schema)"),
    ("filter where having", "agg(n=count()).filter(col('n') > 1)"),
    ("collect show to_arrow to_pandas to_polars to_dicts select with_columns sort", "agg(name=...) first"),
)

#: types of Polars and Spark, and their names here
_TYPES: Final = (
    *((f"{sign}Int{bits}", f"{sign.lower()}int{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)),
    *(("Float32 FloatType", "float32"), ("Float64 DoubleType", "float64"), ("Boolean BooleanType", "bool")),
    *(("ByteType", "int8"), ("ShortType", "int16"), ("IntegerType", "int32"), ("LongType", "int64")),
    *(("String Utf8 StringType VarcharType", "string"), ("Binary BinaryType", "binary"), ("Date DateType", "date")),
    *(("Datetime TimestampType TimestampNTZType", "timestamp"), ("Time TimeType", "time")),
    *(("Duration DayTimeIntervalType", "duration"), ("Decimal DecimalType", "decimal(18, 2)")),
)
#: functions of the package itself
ON_PACKAGE: Final = _by_name(
    ("mean", "avg"),
    ("std", "stddev"),
    ("var", "variance"),
    ("n_unique nunique countDistinct", "count_distinct"),
    ("len", "count"),
    ("column", "col"),
    ("literal", "lit"),
    ("implode", "collect_list"),
    ("ifnull", "coalesce"),
    ("SparkSession SQLContext", "Environment"),
    ("Window", "sum_('x').over('k', order_by='t', rows=(-2, 0))"),
    ("DataFrame LazyFrame", "DataSet"),
    *((name, f"col('x').cast({text!r}): types are those of pyarrow, or their names") for name, text in _TYPES),
    ("List ArrayType", "col('x').cast(pa.list_(pa.int64()))"),
    ("Struct StructType StructField", "col('x').cast(pa.struct({'a': pa.int64()}))"),
    ("MapType", "col('x').cast(pa.map_(pa.string(), pa.int64()))"),
    ("Categorical Enum", "col('x').cast('string'): categories are texts here"),
)
_PACKAGE: Final = "the package"
_SELECTORS: Final = "drey.selectors"

#: places of the methods of a kind in other libraries: library and part
_PLACES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "a data set": (
        *(("Polars", "LazyFrame"), ("Polars", "DataFrame")),
        *(("PySpark", "DataFrame"), ("pandas", "Series and DataFrame")),
    ),
    "group_by()": (("Polars", "GroupBy"), ("PySpark", "GroupedData"), ("pandas", "groupby")),
    "an expression": (("Polars", "Expr"), ("PySpark", "Column"), ("pandas", "Series and DataFrame")),
    ".str": (("Polars", "Expr.str"), ("pandas", "Series.str"), ("Polars", "Expr.bin"), ("Polars", "Expr.cat")),
    ".dt": (("Polars", "Expr.dt"), ("pandas", "Series.dt")),
    ".list": (("Polars", "Expr.list"), ("Polars", "Expr.arr")),
    ".struct": (("Polars", "Expr.struct"),),
    ".name": (("Polars", "Expr.name"),),
    "an environment": (("pandas", "pandas"), ("Polars", "polars")),
    _PACKAGE: (("Polars", "polars"), ("pandas", "pandas"), ("PySpark", "functions"), ("Polars", "Expr")),
    _SELECTORS: (("Polars", "selectors"),),
}
#: names that other rooms call: no part of the API, and left out where names are completed
_OF_ROOMS: Final = frozenset(
    [
        *("call", "chain", "expression", "has_name", "made", "named", "named_by", "output_name"),
        *("add_sink", "analyze_node", "explain_node", "explain_said", "macros", "new_folder", "node_of", "number_of"),
        *("run_to_sink", "run_to_table", "statements", "storage_options_of", "temporary_folder"),
    ]
)
#: similarity from which a name is suggested, 0 to 1
_LIKE: Final = 0.7
#: columns that an error shows
_SHOWN_MAX: Final = 12


class HasOtherNames:
    """Base of the classes of the API. A class gives its name and the foreign names that it does not have."""

    __slots__ = ()
    _kind: ClassVar[str] = ""
    _other_names: ClassVar[Mapping[str, str]] = {}
    #: attributes that hold further names
    _spaces: ClassVar[tuple[str, ...]] = ()

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in _OF_ROOMS]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            text = f"{self._kind} has no {name!r}"
            if name.startswith("_"):
                raise AttributeError(text, name=name, obj=self)
            advice = self._other_names.get(name, "")
            if not advice and self._kind == "a data set" and name in self.columns:
                advice = f"col({name!r}) or data[{name!r}]"
            advice = advice or _answer(self._kind, name)
            raise AttributeError(f"{text}{_said(advice) or _near(name, self)}")


def package_advice(name: str, own: Sequence[str]) -> str:
    """Return the end of an error: the counterpart of a foreign name, or a near one; ``own``: the package's names."""
    if name.startswith("_"):
        return ""
    found = ON_PACKAGE.get(name) or (f"{name}_" if f"{name}_" in own else "")
    if not found and name in ON_ENVIRONMENTS:
        found = f"env.{ON_ENVIRONMENTS[name]}"
    found = found or _answer(_PACKAGE, name)
    return _said(found.replace("env.", "Environment().")) or did_you_mean(name, own, 1, _LIKE)


def selectors_error(name: str, own: Sequence[str]) -> AttributeError:
    """Return the error about a name that no selector has."""
    close = near_names(name, own, likeness=_LIKE)
    near = f": did you mean {close[0]!r}?" if close else f"; there are {', '.join(own)}"
    return AttributeError(f"{_SELECTORS} has no {name!r}{_said(_answer(_SELECTORS, name)) or near}", name=name)


def _said(advice: str) -> str:
    """Return an advice, or the reason why there is none, as the end of an error."""
    reason = advice.removeprefix("no: ")
    return advice and (f": {reason}" if reason != advice else f": write {advice}")


def _answer(kind: str, name: str) -> str:
    """Return the answer for a name that another library has in such a place; "" for none."""
    from engine.foreign_names import NAMES

    found = (NAMES[library][part].get(name) for library, part in _PLACES.get(kind, ()))
    return next((answer.replace("`", "") for answer in found if answer), "")


def _near(name: str, held: HasOtherNames) -> str:
    """Return names similar to one, with their place; all names where there are few."""
    own = _names_of(held)
    behind = {one: space for space in held._spaces for one in _names_of(getattr(held, space))}
    if name in behind:
        return f": it is behind .{behind[name]}: .{behind[name]}.{name}(...)"
    if found := near_names(name, own, likeness=_LIKE):
        return f": did you mean {found[0]!r}?"
    columns: list[str] = getattr(held, "columns", []) if held._kind == "a data set" else []
    if found := near_names(name, columns, likeness=_LIKE):
        return f": did you mean col({found[0]!r})?"
    if found := near_names(name, behind, likeness=_LIKE):
        return f": did you mean .{behind[found[0]]}.{found[0]}(...)?"
    if columns:
        shown = [*columns[:_SHOWN_MAX], *(["..."] if len(columns) > _SHOWN_MAX else [])]
        return f"; its columns are {', '.join(shown)}"
    return f"; there are {', '.join(own)}" if held._kind.startswith(".") else ""


def _names_of(held: object) -> list[str]:
    return [one for one in dir(type(held)) if not one.startswith("_") and one not in _OF_ROOMS]
