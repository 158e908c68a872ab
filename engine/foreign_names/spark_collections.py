"""Names of ``pyspark.sql.functions`` for lists, maps, aggregates and windows, and for what surrounds a job.

The notation of answers is described in ``engine.foreign_names``.

Held by: tests/docs/test_names_pages.py
"""

from __future__ import annotations

from typing import Final

from engine.foreign_names.polars_expressions import BIASED_KURTOSIS, BIASED_SKEW, Rows
from engine.foreign_names.spark_functions import SCALARS

_LISTS: Final[Rows] = (
    ("aggregate reduce", "`x.list.reduce(lambda one, two: one + two, 0)`"),
    ("array", "`array(x, y)`"),
    ("array_append", "`x.list.concat(array(y))`"),
    ("array_prepend", "`array(y).list.concat(x)`"),
    ("array_insert", "`x.list.slice(0, 2).list.concat(array(y), x.list.slice(2))`"),
    ("array_compact", "`x.list.drop_nulls()`"),
    ("array_contains", "`x.list.contains(1)`"),
    ("array_distinct", "`x.list.distinct()`"),
    ("array_except", "`x.list.difference(y)`"),
    ("array_intersect", "`x.list.intersection(y)`"),
    ("array_union", "`x.list.union(y)`"),
    ("array_join", "`x.list.join(',')`"),
    ("array_max", "`x.list.max()`"),
    ("array_min", "`x.list.min()`"),
    ("array_position", "`x.list.position(1) + 1`, null where it is not there"),
    ("array_remove", "`x.list.filter(~element().eq_null_safe(1))`"),
    ("array_repeat", "`sequence(1, 3).list.transform(lambda _: lit('a'))`"),
    ("array_size cardinality size", "`x.list.length()`"),
    ("array_sort sort_array", "`x.list.sort()`"),
    ("arrays_overlap", "`x.list.intersection(y).list.length() > 0`"),
    ("arrays_zip", "`x.list.zip(y)`"),
    ("zip_with", "`x.list.zip(y).list.transform(lambda pair: pair.field('part0') + pair.field('part1'))`"),
    ("concat", "`x.str.concat(y)`, `x.list.concat(y)`"),
    ("element_at get", "`x.list.get(0)` from 0, `x.map.get('a')`"),
    ("try_element_at", "`x.list.get(0)`, null beyond the end"),
    ("exists", "`x.list.exists(element() > 1)`"),
    ("forall", "`x.list.all(element() > 1)`"),
    ("filter", "`x.list.filter(element() > 1)`"),
    ("flatten", "`x.list.flatten()`"),
    ("sequence", "`sequence(1, x)`"),
    ("shuffle", "`ds.explode('l')`, sorted by a column of `rand()`"),
    ("slice", "`x.list.slice(1, 3)`: start and stop, from 0"),
    ("transform", "`x.list.transform(lambda e: e * 2)`"),
    ("explode_outer", "`ds.explode('l')`"),
    ("explode", "`ds.explode('l', keep_empty=False)`"),
    ("posexplode_outer", "`ds.explode('l', position='p')`"),
    ("posexplode", "`ds.explode('l', position='p', keep_empty=False)`"),
    ("inline inline_outer", "`ds.explode('ls').unnest('ls')`"),
    ("stack", "`ds.unpivot(['x', 'y'], index='k')`"),
)

_MAPS: Final[Rows] = (
    ("create_map", "`map_from(array(lit('a')), array(x))`"),
    ("map_concat", "`x.map.concat(y)`"),
    ("map_contains_key", "`x.map.contains('a')`"),
    ("map_entries", "`x.map.entries()`"),
    ("map_filter", "`x.map.filter(lambda key, value: value > 1)`"),
    ("map_from_arrays", "`map_from(x, y)`"),
    ("map_from_entries", "`map_from_entries(x)`"),
    ("map_keys", "`x.map.keys()`"),
    ("map_values", "`x.map.values()`"),
    ("map_zip_with", "`x.map.entries()` and `y.map.get('a')`, key by key"),
    ("transform_keys transform_values", "`x.map.@(lambda key, value: value)`"),
    ("str_to_map", "`map_from(x.str.extract_all('([a-z]+)='), x.str.extract_all('=([a-z]+)'))`"),
    ("named_struct struct", "`struct(a=x, b=y)`"),
)

_AGGREGATES: Final[Rows] = (
    ("any_value", "`first(x, ignore_nulls=True)`"),
    ("first", "`first(x)`"),
    ("last", "`last(x)`"),
    ("first_value", "`first(x)`, `first_value(x).over(order_by='t')`"),
    ("last_value", "`last(x)`, `last_value(x).over(order_by='t')`"),
    ("approx_count_distinct bit_and bit_or bit_xor collect_set median mode product", "`@(x)`"),
    ("stddev stddev_pop variance", "`@(x)`"),
    ("kurtosis", BIASED_KURTOSIS),
    ("skewness", BIASED_SKEW),
    ("corr covar_pop", "`@(x, y)`"),
    ("count_if", "`count_if(x > 0)`"),
    ("approx_percentile percentile_approx", "`approx_quantile(x, 0.9)`"),
    ("array_agg collect_list", "`collect_list(x, filter=x.is_not_null())`"),
    ("collect_union", "`collect_list(x).list.flatten().list.distinct()`"),
    ("avg mean", "`avg(x)`"),
    ("bool_and every", "`all_(x)`"),
    ("bool_or some", "`any_(x)`"),
    ("count", "`count()`, `count(x)`"),
    ("count_distinct", "`count_distinct(x, y)`"),
    ("covar_samp", "`covar(x, y)`"),
    ("grouping grouping_id", "`ds.group_by('k').rollup(grouping_id='g')`"),
    ("histogram_numeric", "`histogram(x)`"),
    ("listagg string_agg", "`string_agg(x, ',')`"),
    ("listagg_distinct string_agg_distinct", "`string_agg(x, ',', distinct=True)`"),
    ("max min", "`@_(x)`"),
    ("max_by min_by", "`@(x, y)`"),
    ("percentile", "`quantile(x, 0.9)`"),
    ("regr_avgx regr_avgy regr_count regr_intercept regr_r2", "`env.sql('SELECT @(y, x) FROM t')`"),
    ("regr_slope regr_sxx regr_sxy regr_syy", "`env.sql('SELECT @(y, x) FROM t')`"),
    ("std stddev_samp", "`stddev(x)`"),
    ("var_samp", "`variance(x)`"),
    ("var_pop", "`variance_pop(x)`"),
    ("sum", "`sum_(x)`"),
    ("sum_distinct", "`sum_(x, distinct=True)`"),
    ("try_avg try_sum", "`sum_(x.cast('float64'))`, which does not overflow"),
    ("vector_avg vector_sum", "`ds.explode('l', position='p')`, and the aggregate by position"),
    (
        "vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize",
        "`x.list.zip(y)`, a function of the pairs, and their sum; or `ds.map_batches(f, ds.schema)` with NumPy",
    ),
)

_WINDOWS: Final[Rows] = (
    ("cume_dist dense_rank percent_rank rank row_number", "`@().over('k', order_by='t')`"),
    ("lag lead", "`@(x, 1).over('k', order_by='t')`"),
    ("nth_value", "`nth_value(x, 2).over('k', order_by='t')`"),
    ("ntile", "`ntile(4).over(order_by='x')`"),
    ("counter_diff", "`diff(x).over('k', order_by='t')`"),
)

_NO_SKETCHES: Final = "no: sketches are not stored; `approx_count_distinct(x)`, `approx_quantile(x, 0.9)`"
_SKETCHES: Final[Rows] = (
    ("bitmap_and_agg bitmap_bit_position bitmap_bucket_number bitmap_construct_agg bitmap_count", _NO_SKETCHES),
    ("bitmap_or_agg count_min_sketch", _NO_SKETCHES),
    ("hll_sketch_agg hll_sketch_estimate hll_union hll_union_agg", _NO_SKETCHES),
    *(
        (f"kll_{name}_bigint kll_{name}_double kll_{name}_float", _NO_SKETCHES)
        for name in (
            *("merge_agg", "sketch_agg", "sketch_get_n", "sketch_get_quantile", "sketch_get_rank", "sketch_merge"),
            "sketch_to_string",
        )
    ),
    ("theta_difference theta_intersection theta_intersection_agg theta_sketch_agg theta_sketch_estimate", _NO_SKETCHES),
    ("theta_union theta_union_agg", _NO_SKETCHES),
    *(
        (f"tuple_{name}_double tuple_{name}_integer", _NO_SKETCHES)
        for name in (
            *("difference", "difference_theta", "intersection", "intersection_agg", "intersection_theta", "sketch_agg"),
            *("sketch_estimate", "sketch_summary", "sketch_theta", "union", "union_agg", "union_theta"),
        )
    ),
)

_SURROUNDINGS: Final[Rows] = (
    (
        "call_function",
        "`env.sql('SELECT abs(x) FROM t')`, functions of your own by `env.register_function('g', udf('int64')(f))`",
    ),
    (
        "call_udf",
        "`env.sql('SELECT abs(x) FROM t')`, functions of your own by `env.register_function('h', udf('int64')(f))`",
    ),
    ("udf", "`udf('int64')(f)(x)`"),
    ("pandas_udf", "`udf('int64', batch='pandas')(f)(x)`"),
    ("arrow_udf", "`udf('int64', batch='arrow')(f)(x)`"),
    ("udtf arrow_udtf", "`ds.flat_map(f, ds.schema)`"),
    ("unwrap_udt", "no: there are no types of users"),
    ("current_catalog current_database current_schema current_path", "`env.sql('SELECT current_schema()')`"),
    ("current_user session_user user", "no: a job does not know who reads its results"),
    ("version", "`engine.__version__`"),
    ("input_file_name", "`env.read_csv('in.csv', file_name_column='file')`"),
    ("input_file_block_start input_file_block_length", "`row_place()`"),
    ("monotonically_increasing_id", "`row_place()`, `ds.with_row_index('i')`"),
    ("spark_partition_id", "no: rows move between subtasks as the plan wants it"),
    ("java_method reflect try_reflect", "no: there is no JVM"),
    (
        "st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid",
        "no: `udf('binary')(f)(x)` with a library such as shapely",
    ),
)

FUNCTIONS: Final[Rows] = (
    *SCALARS, *_LISTS, *_MAPS, *_AGGREGATES, *_WINDOWS, *_SKETCHES, *_SURROUNDINGS
)  # fmt: skip
