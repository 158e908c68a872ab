"""Names that pandas, Polars and Spark have for methods with another name here: the error tells which to use.

    data.groupby("k")      AttributeError: a data set has no 'groupby': write group_by(keys).agg(name=...)
    col("x").isin([1])     AttributeError: an expression has no 'isin': write is_in(values)
    data.price             AttributeError: a data set has no 'price': write col('price') or data['price']
    col("x").list.lenght   AttributeError: .list has no 'lenght': did you mean 'length'?
    col("x").upper         AttributeError: an expression has no 'upper': it is behind .str: .str.upper(...)

    class DataSet(HasOtherNames): _kind, _other_names = "a data set", ON_DATA_SETS

It stays an AttributeError, so ``hasattr`` and checks for protocols work as before. Type checkers know
nothing of it: to them what is not there is not there.

Held by: tests/api/test_other_names.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn


def _by_name(*rows: tuple[str, str]) -> dict[str, str]:
    return {name: advice for names, advice in rows for name in names.split()}


ON_DATA_SETS: Final = _by_name(
    ("groupby groupBy", "group_by(keys).agg(name=...)"),
    ("where query", "filter(condition)"),
    ("order_by orderBy sort_values sort_by", "sort(by, descending=...)"),
    ("withColumn withColumns with_column assign mutate", "with_columns(name=expression)"),
    ("withColumnRenamed withColumnsRenamed", "rename({'old': 'new'})"),
    ("selectExpr", "select(name=expression), or env.sql(query)"),
    ("merge", "join(other, on=..., how=...)"),
    ("join_asof merge_asof", "asof_join(other, on=..., by=...)"),
    ("join_where", "join(other, condition=...)"),
    ("crossJoin", "join(other, how='cross')"),
    ("unionAll unionByName concat append vstack extend", "union(other)"),
    ("subtract minus exceptAll", "except_(other, all=...)"),
    ("intersectAll", "intersect(other, all=True)"),
    ("dropna drop_na", "drop_nulls(subset)"),
    ("fillna", "fill_null(values)"),
    ("dropDuplicates", "drop_duplicates(subset)"),
    ("isnull isna", "null_count()"),
    ("unique", "distinct(subset), or drop_duplicates(subset, keep=...)"),
    ("melt", "unpivot(on, index)"),
    ("toPandas", "to_pandas()"),
    ("toArrow", "to_arrow()"),
    ("to_csv sink_csv", "write_csv(path), and env.execute() runs it"),
    ("to_parquet sink_parquet", "write_parquet(path), and env.execute() runs it"),
    ("to_json sink_ndjson write_ndjson", "write_json(path), and env.execute() runs it"),
    ("persist", "cache()"),
    ("take first", "head(n)"),
    ("printSchema dtypes collect_schema", "schema"),
    ("shape height width", "count() and columns"),
    ("iterrows itertuples toLocalIterator", "iter_rows()"),
    ("apply map_rows foreach", "map(fn, schema)"),
    ("flatMap", "flat_map(fn, schema)"),
    ("mapInPandas mapInArrow", "map_batches(fn, schema, format=...)"),
    ("mapPartitions", "map_partition(fn, schema)"),
    ("repartition", "rebalance(), or key_by(keys)"),
    ("with_row_count", "with_row_index(name)"),
    ("iloc loc", "filter(condition), limit(n, offset=...) and select(columns)"),
    ("to_dict_list rows", "to_dicts()"),
    ("groupby_dynamic resample", "group_by_dynamic(index, every)"),
    ("createOrReplaceTempView", "env.register(name, data_set)"),
)

_AGGREGATE: Final = "an aggregate such as sum_('x') or avg('x') in group_by(...).agg(name=...), or .over(...) a window"

ON_EXPRESSIONS: Final = _by_name(
    ("trunc truncate", "floor(), or ceil() of numbers below 0"),
    ("isin", "is_in(values)"),
    ("isnull isna isNull", "is_null()"),
    ("notnull notna isNotNull", "is_not_null()"),
    ("isNaN isnan", "is_nan()"),
    ("fillna", "fill_null(value)"),
    ("map_dict", "replace({old: new}) or replace_strict({old: new}, default)"),
    ("hash xxhash64", "hash64(col('x'))"),
    ("sha2", "sha256() or sha512()"),
    ("bitwise_count_ones", "bit_count()"),
    ("soundex", "str.jaro_winkler(other) or str.levenshtein(other); soundex is not there, it fits English names alone"),
    ("astype", "cast(type)"),
    ("eqNullSafe eq_missing", "eq_null_safe(other)"),
    ("sum mean avg max min count std var median first last n_unique nunique quantile", _AGGREGATE),
    ("desc asc", "descending=True in sort(...) or over(...)"),
    ("over", _AGGREGATE),
    ("shift", "lag(x, n).over(partition_by, order_by)"),
    *(
        (names, f"{names.split()[0]}(x).over(partition_by, order_by)")
        for names in (
            *("diff", "pct_change", "cum_sum cumsum", "cum_prod cumprod", "cum_min cummin", "cum_max cummax"),
            *("cum_count", "interpolate", "ewm_mean ewm", "rank", "forward_fill ffill pad", "backward_fill bfill"),
        )
    ),
    *(
        (f"rolling_{each}", f"rolling_{each}(x, 3).over(partition_by, order_by)")
        for each in ("sum", "mean", "min", "max", "std", "var")
    ),
    ("rolling", "avg(x).over(partition_by, order_by, rows=(-2, 0)) and the like"),
    ("cut", "cut(x, breaks)"),
    ("qcut", "qcut(x, quantiles).over(partition_by)"),
    ("is_unique is_duplicated is_first_distinct is_last_distinct", "the function of that name: is_unique('x')"),
    ("value_counts", "value_counts('x') of the data set"),
    ("exclude", "a selector of drey.selectors, which choose columns"),
    ("apply map_elements map_batches", "a function made with udf(type), as f(col('x'))"),
    ("rlike", ".str.matches(pattern)"),
    ("startswith startsWith", ".str.starts_with(text)"),
    ("endswith endsWith", ".str.ends_with(text)"),
    ("substr", ".str.slice(start, stop)"),
    ("getField", "field(name)"),
    ("getItem", ".list.get(index) or .map.get(key)"),
    ("unique", "distinct(subset) of the data set"),
    ("isBetween is_between", "between(low, high)"),
)

ON_TEXTS: Final = _by_name(
    ("len len_chars", "length()"),
    ("startswith", "starts_with(text)"),
    ("endswith", "ends_with(text)"),
    ("to_uppercase", "upper()"),
    ("to_lowercase", "lower()"),
    ("strip_chars trim", "strip()"),
    ("to_datetime strptime", "to_timestamp(format)"),
    ("substr substring", "slice(start, stop)"),
    ("zfill rjust pad_start", "pad_left(width, fill)"),
    ("ljust pad_end", "pad_right(width, fill)"),
    ("findall", "extract_all(pattern)"),
    ("match fullmatch isdigit isalpha rlike", "matches(pattern)"),
    ("json_path_match", "json_get(path)"),
    ("json_decode", "json_parse(schema)"),
    ("join", ".list.join(separator), of lists"),
    ("soundex", "jaro_winkler(other) or levenshtein(other); soundex is not there, it fits English names alone"),
    ("jaro_winkler_similarity", "jaro_winkler(other)"),
    ("octet_length", "len_bytes()"),
    ("json_extract get_json_object", "json_get(path)"),
    ("cat", "concat(other) or +"),
)

ON_TIMES: Final = _by_name(
    ("dayofweek day_of_week", "weekday()"),
    ("dayofyear", "day_of_year()"),
    ("weekofyear isocalendar", "week() and iso_year()"),
    ("floor trunc round", "truncate(unit)"),
    ("tz_convert convert_time_zone", "to_timezone(zone)"),
    ("tz_localize replace_time_zone", "with_timezone(zone)"),
    ("timestamp", "epoch(unit)"),
    ("to_string format", "strftime(format)"),
    ("total_seconds total_days", "diff(other, unit) of the two times"),
    ("bucket time_bucket", "truncate('15 minutes')"),
    ("weekday_name", "day_name()"),
    ("month_end", "last_day()"),
    ("month_start", "first_day()"),
)

ON_LISTS: Final = _by_name(
    ("len size lengths", "length()"),
    ("head", "slice(0, n)"),
    ("tail", "slice(-n)"),
    ("array_contains", "contains(value)"),
    ("unique", "distinct()"),
    ("n_unique nunique", "distinct().list.length()"),
    ("average avg", "mean()"),
    ("array_join to_string", "join(separator)"),
    ("explode", "explode(column) of the data set"),
    ("map apply agg", "transform(lambda x: ...)"),
    ("set_union array_union", "union(other)"),
    ("set_intersection array_intersect", "intersection(other)"),
    ("set_difference array_except", "difference(other)"),
    ("set_symmetric_difference", "symmetric_difference(other)"),
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
    ("unnest", "unnest(column) of the data set"),
    ("json_encode", "to_json() of the expression"),
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
    ("stop", "close()"),
)

ON_GROUPS: Final = _by_name(
    ("count size len", "agg(n=count())"),
    ("sum mean max min avg median first last std var nunique n_unique", "agg(name=sum_('x')) and the like"),
    ("apply applyInPandas map_groups flatMapGroups", "reduce(fn, schema)"),
    ("pivot", "pivot(on, values, index, agg) of the data set"),
    ("aggregate", "agg(name=...)"),
    ("filter where having", "agg(n=count()).filter(col('n') > 1)"),
    ("collect show to_arrow to_pandas to_polars to_dicts select with_columns sort", "agg(name=...) first"),
)


#: similarity from which a name is suggested, 0 to 1
_LIKE: Final = 0.7


class HasOtherNames:
    """Base of the classes of the API. A class gives its name and the foreign names that it does not have."""

    __slots__ = ()
    _kind: ClassVar[str] = ""
    _other_names: ClassVar[Mapping[str, str]] = {}
    #: attributes that hold further names
    _spaces: ClassVar[tuple[str, ...]] = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            text = f"{self._kind} has no {name!r}"
            if name.startswith("_"):
                raise AttributeError(text, name=name, obj=self)
            advice = self._other_names.get(name, "")
            if not advice and self._kind == "a data set" and name in self.columns:
                advice = f"col({name!r}) or data[{name!r}]"
            if advice:
                raise AttributeError(f"{text}: write {advice}")
            raise AttributeError(f"{text}{_near(name, self)}")


def _near(name: str, held: HasOtherNames) -> str:
    """Return names similar to one, with their place; all names where there are few."""
    import difflib

    own = _names_of(held)
    behind = {one: space for space in held._spaces for one in _names_of(getattr(held, space))}
    if name in behind:
        return f": it is behind .{behind[name]}: .{behind[name]}.{name}(...)"
    if found := difflib.get_close_matches(name, own, 1, _LIKE):
        return f": did you mean {found[0]!r}?"
    columns: list[str] = getattr(held, "columns", []) if held._kind == "a data set" else []
    if found := difflib.get_close_matches(name, columns, 1, _LIKE):
        return f": did you mean col({found[0]!r})?"
    if found := difflib.get_close_matches(name, behind, 1, _LIKE):
        return f": did you mean .{behind[found[0]]}.{found[0]}(...)?"
    return f"; there are {', '.join(own)}" if held._kind.startswith(".") else ""


def _names_of(held: object) -> list[str]:
    return [one for one in dir(type(held)) if not one.startswith("_")]
