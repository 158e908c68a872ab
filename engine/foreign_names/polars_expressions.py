"""Names of Polars' expressions and their namespaces. ``@`` stands for the name itself.

The notation of answers is described in ``engine.foreign_names``.

Held by: tests/docs/test_names_pages.py
"""

from __future__ import annotations

from typing import Final

Rows = tuple[tuple[str, str], ...]

#: answers that several libraries share
PLACES_IN_ORDER: Final = "`ds.with_row_index('i').sort('x').select('i')`"
MICROSECONDS: Final = "`x.dt.epoch('us') % 1_000_000`; `x.dt.microsecond()` has those behind the millisecond alone"
UPDATED: Final = (
    "`ds.join(other, on='k', how='left', suffix='_r').with_columns(x=coalesce(col('x_r'), col('x')))"
    ".drop(cs.ends_with('_r'))`"
)
SIGNED_ZEROS: Final = "`x.str.pad_left(5, '0')`, which puts them before a sign, too"
_OF_DEVIATIONS: Final = "`ds.with_columns(z=(x - avg(x).over()) / stddev_pop(x).over())"
BIASED_SKEW: Final = f"{_OF_DEVIATIONS}.agg(s=avg(col('z') ** 3))`; `skewness(x)` corrects the bias"
BIASED_KURTOSIS: Final = f"{_OF_DEVIATIONS}.agg(s=avg(col('z') ** 4 - 3))`; `kurtosis(x)` corrects the bias"

_OF_NUMBERS: Final[Rows] = (
    ("abs cbrt ceil cos cosh degrees exp floor", "`x.@()`"),
    ("radians sign sin sinh sqrt tan tanh log1p", "`x.@()`"),
    ("cot", "`1 / x.tan()`"),
    ("arccos", "`x.acos()`"),
    ("arccosh", "`x.acosh()`"),
    ("arcsin", "`x.asin()`"),
    ("arcsinh", "`x.asinh()`"),
    ("arctan", "`x.atan()`"),
    ("arctanh", "`x.atanh()`"),
    ("log", "`x.ln()`, `x.log(10)`"),
    ("log10", "`x.log10()`"),
    ("pow", "`x ** y`, `x.power(y)`"),
    ("round", "`x.round(2)`, halves away from zero; `x.round(mode='half_to_even')`"),
    ("round_sig_figs", "`x.round(2)`, digits behind the point"),
    ("truncate", "`x.trunc()`"),
    ("clip", "`x.clip(0, 10)`"),
    ("add", "`x + y`"),
    ("sub", "`x - y`"),
    ("mul", "`x * y`"),
    ("truediv", "`x / y`"),
    ("floordiv", "`x // y`"),
    ("truncdiv", "`(x / y).trunc()`"),
    ("mod", "`x % y`"),
    ("neg", "`-x`"),
    ("hash", "`hash64(x, y)`"),
    ("bitwise_count_ones", "`x.bit_count()`"),
    ("bitwise_count_zeros", "`64 - x.bit_count()`"),
    ("bitwise_leading_ones bitwise_leading_zeros", "`x.to_bin().str.length()`, the position of the highest bit"),
    ("bitwise_trailing_ones bitwise_trailing_zeros", "`x.to_bin().str.matches('0$')` and the like, over the digits"),
    ("bitwise_and", "`bit_and(x)`, an aggregate; `x.bit_and(y)` of two values"),
    ("bitwise_or", "`bit_or(x)`, an aggregate; `x.bit_or(y)` of two values"),
    ("bitwise_xor", "`bit_xor(x)`, an aggregate; `x.bit_xor(y)` of two values"),
    ("erf erfc", "`udf('float64')(math.erf)(x)`"),
    ("reinterpret", "`x.cast('uint64')`, for values that fit"),
)

_OF_CONDITIONS: Final[Rows] = (
    ("and_", "`x & y`"),
    ("or_", "`x | y`"),
    ("xor", "`x != y` of conditions, `x.bit_xor(y)` of integers"),
    ("not_", "`~x`"),
    ("eq", "`x == y`"),
    ("ne", "`x != y`"),
    ("lt", "`x < y`"),
    ("le", "`x <= y`"),
    ("gt", "`x > y`"),
    ("ge", "`x >= y`"),
    ("eq_missing", "`x.eq_null_safe(y)`"),
    ("ne_missing", "`~x.eq_null_safe(y)`"),
    ("is_between", "`x.between(1, 5)`"),
    ("is_close", "`(x - y).abs() <= 1e-9 * greatest(x.abs(), y.abs())`"),
    ("is_finite is_infinite is_nan is_null is_not_null", "`x.@()`"),
    ("is_in", "`x.is_in([1, 2])`"),
    ("is_not_nan", "`~x.is_nan()`"),
    ("fill_nan fill_null", "`x.@(0)`"),
    ("replace", "`x.replace({1: 2})`"),
    ("replace_strict", "`x.replace_strict({1: 2}, default=0)`"),
    ("cut", "`cut(x, [1, 2])`"),
    ("qcut", "`qcut(x, 4).over()`"),
    ("is_first_distinct is_last_distinct is_unique is_duplicated", "`@('x')`"),
    ("is_empty", "`ds.count() == 0`"),
    ("has_nulls", "`any_(x.is_null())`, an aggregate"),
    ("is_sorted", "`lag(x).over(order_by='t') <= x`, and `all_` of it"),
    ("lower_bound upper_bound", "`lit(-(2**63))` and the like, the least and greatest of a type"),
)

_OF_TYPES_AND_NAMES: Final[Rows] = (
    ("alias", "`x.alias('a')`, or `ds.select(a=x)`"),
    ("cast", "`x.cast('float64')`, `x.try_cast('float64')`"),
    ("arr", "`x.list`, also of lists of one length"),
    ("bin", "`x.str`, also of bytes"),
    ("cat", "`x.str`: categories are texts here"),
    ("dt list name str struct", "`x.@`"),
    ("ext", "no: extension types are read as the type that they are stored in"),
    ("meta", "no: an expression is a value for queries; `str(x)` shows it"),
    ("exclude", "`cs.all().exclude('a')`"),
    ("to_physical", "`x.cast('int32')` of a date"),
    ("deserialize", "no: a plan is kept as the program that makes it"),
    ("inspect", "`ds.show()`"),
    ("map", "`x.map`, the functions of maps; what calls a function is `udf('int64')(f)(x)`"),
    ("map_elements", "`udf('int64')(f)(x)`"),
    ("map_batches", "`udf('int64', batch='arrow')(f)(x)`"),
    ("pipe pipe_with_dtype", "`f(x)`"),
)

_AGGREGATES: Final[Rows] = (
    ("sum", "`sum_(x)`"),
    ("mean", "`avg(x)`"),
    ("min", "`min_(x)`, where NaN is the greatest number"),
    ("max", "`max_(x)`, where NaN is the greatest number"),
    ("nan_min nan_max", "`max_(x)`, where NaN is the greatest number"),
    ("median product", "`@(x)`"),
    ("std", "`stddev(x)`, `stddev_pop(x)`"),
    ("var", "`variance(x)`, `variance_pop(x)`"),
    ("skew", BIASED_SKEW),
    ("kurtosis", BIASED_KURTOSIS),
    ("quantile", "`quantile(x, 0.9)`"),
    ("approx_quantile", "`approx_quantile(x, 0.9)`"),
    ("approx_n_unique", "`approx_count_distinct(x)`"),
    ("n_unique", "`count_distinct(x)`, which leaves out null; `count_distinct(x, y)`"),
    ("count", "`count(x)`, which leaves out null"),
    ("len", "`count()`"),
    ("null_count", "`count_if(x.is_null())`, `ds.null_count()`"),
    ("any", "`any_(x)`"),
    ("all", "`all_(x)`"),
    ("first", "`first(x)`, or `min_by(x, y)` by an order"),
    ("last", "`last(x)`, or `max_by(x, y)` by an order"),
    ("item", "`ds.select(x).scalar()`"),
    ("min_by", "`min_by(x, y)`"),
    ("max_by", "`max_by(x, y)`"),
    ("mode", "`mode(x)`, one value"),
    ("implode", "`collect_list(x)`"),
    ("unique", "`collect_set(x)`, or `ds.select(x).distinct()`"),
    ("value_counts unique_counts", "`ds.value_counts('x')`"),
    ("hist", "`histogram(x)`, or `cut(x, [1, 2])` and `count()`"),
    ("dot", "`sum_(x * y)`"),
    ("entropy", "`-sum_(x * x.ln())` of shares"),
    ("top_k", "`collect_list(x, order_by=x, descending=True)`, or `ds.top(5, 'x')`"),
    ("top_k_by", "`ds.top(5, 'y')`, or `ds.group_by('k').head(5, by='y', descending=True)`"),
    ("bottom_k", "`ds.top(5, 'x', descending=False)`"),
    ("bottom_k_by", "`ds.top(5, 'y', descending=False)`, or `ds.group_by('k').head(5, by='y')`"),
    ("arg_max", "`max_by('n', x)`, where n numbers the rows"),
    ("arg_min", "`min_by('n', x)`, where n numbers the rows"),
    ("filter", "`sum_(x, filter=y > 0)`, or `ds.filter(y > 0)`"),
)

_BY_ROWS: Final[Rows] = (
    ("over", "`sum_(x).over('k')`, `cum_sum(x).over('k', order_by='t')`"),
    ("cum_count cum_max cum_min cum_prod cum_sum diff pct_change", "`@(x).over(order_by='t')`"),
    ("backward_fill forward_fill interpolate", "`@(x).over(order_by='t')`"),
    (
        "rolling_max rolling_mean rolling_median rolling_min rolling_std rolling_sum rolling_var",
        "`@(x, 3).over(order_by='t')`",
    ),
    ("rolling_quantile", "`@(x, 0.9, 3).over(order_by='t')`"),
    ("rolling_map", "a function of `collect_list(x).over(order_by='t', rows=(-2, 0))`"),
    ("rolling_median_by rolling_quantile_by", "`ds.rolling('t', '2 days').agg(a=median('x'))`"),
    (
        "rolling_kurtosis rolling_rank rolling_rank_by rolling_skew",
        "no: frames have no such function; `collect_list(x).over(order_by='t', rows=(-2, 0))` has their values",
    ),
    ("rolling_max_by", "`max_(x).over(order_by='t', range=('-2 days', '0 days'))`, or `ds.rolling('t', '2 days')`"),
    ("rolling_mean_by", "`avg(x).over(order_by='t', range=('-2 days', '0 days'))`, or `ds.rolling('t', '2 days')`"),
    ("rolling_min_by", "`ds.rolling('t', '2 days').agg(a=min_('x'))`"),
    ("rolling_std_by rolling_sum_by rolling_var_by rolling", "`ds.rolling('t', '2 days').agg(a=sum_('x'))`"),
    ("ewm_mean", "`ewm_mean(x, alpha=0.5).over(order_by='t')`"),
    ("ewm_mean_by ewm_std ewm_sum ewm_sum_by ewm_var", "`ds.group_by('k').reduce(f)`: the mean alone is built in"),
    ("cumulative_eval", "`sum_(x).over(order_by='t', rows=(None, 0))`, any aggregate"),
    ("interpolate_by", "`interpolate(x).over(order_by='t')` after `ds.upsample('t', '1 hour')`"),
    ("rank", "`rank('average').over(order_by='x')`, also `'dense'`, `'min'`, `'max'`"),
    ("shift", "`lag(x).over(order_by='t')`, `lead(x)` for negative numbers"),
    ("rle", "`ds.group_by('run').agg(x=first('x'), n=count())` over the numbers of runs"),
    (
        "rle_id",
        "`cum_sum('is_new').over(order_by='t')` over `(~lag(x).over(order_by='t').eq_null_safe(x)).cast('int64')`",
    ),
    ("peak_max peak_min", "`lag(x).over(order_by='t') < x` and `lead(x).over(order_by='t') < x`"),
    ("head", "`ds.group_by('k').head(5)`, `ds.head(5)`"),
    ("tail", "`ds.group_by('k').head(5, by='t', descending=True)`, `ds.tail(5)`"),
    ("limit", "`ds.limit(5)`"),
    ("slice", "`ds.limit(5, offset=2)`"),
    ("sort", "`ds.sort('x')`, `collect_list(x, order_by=x)` in a group"),
    ("sort_by", "`ds.sort('y')`, `collect_list(x, order_by=y)` in a group"),
    ("arg_sort", PLACES_IN_ORDER),
    ("arg_true arg_unique index_of", "`ds.with_row_index('i').filter(x == 1).select('i')`"),
    ("explode", "`ds.explode('l')`"),
    ("drop_nans", "`ds.filter(~x.is_nan())`"),
    ("drop_nulls", "`ds.drop_nulls('x')`"),
    ("append extend_constant", "`ds.select('k').union(other.select('k'))`"),
    ("gather get", "`nth_value(x, 3).over(order_by='t')`, from 1, or a join by `ds.with_row_index('i')`"),
    ("gather_every", "`ds.with_row_index('i').filter(col('i') % 10 == 0)`"),
    ("reverse", "`ds.sort('t', descending=True)`"),
    ("repeat_by", "`sequence(1, x)`, whose elements are exploded"),
    ("reshape", "`collect_list(x)` in groups: a column is one value a row"),
    ("sample", "`ds.sample(0.1)`"),
    ("search_sorted", "`ds.asof_join(other, on='t', suffix='_r')`"),
    ("set_sorted", "no: an order is not believed, but made; rows that are sorted are sorted in one pass"),
    ("shuffle", "`ds.with_columns(r=rand()).sort('r')`"),
    ("bin_intervals", "`cut(x, [1, 2])`"),
    ("bin_quantiles", "`qcut(x, 4).over()`"),
    ("bin_ranks", "`ntile(4).over(order_by='x')`"),
)

EXPR: Final[Rows] = (*_OF_NUMBERS, *_OF_CONDITIONS, *_OF_TYPES_AND_NAMES, *_AGGREGATES, *_BY_ROWS)

NAME: Final[Rows] = (
    ("keep to_lowercase to_uppercase", "`x.name.@()`"),
    ("prefix suffix", "`x.name.@('a_')`"),
    ("replace", "`x.name.replace('a', 'b')`"),
    ("map", "`x.name.map(f)`"),
    ("strip_prefix", "`x.name.map(lambda name: name.removeprefix('a_'))`"),
    ("strip_suffix", "`x.name.map(lambda name: name.removesuffix('_a'))`"),
    ("map_fields prefix_fields suffix_fields", "`x.struct.rename_fields({'a': 'b'})`"),
)

META: Final[Rows] = (
    (
        "as_expression as_selector eq has_multiple_outputs is_column is_column_selection is_known_length"
        " is_length_preserving is_literal is_regex_projection is_row_separable is_scalar ne output_name pop root_names"
        " serialize show_graph tree_format undo_aliases",
        "no: an expression is a value for queries; `str(x)` shows it, `ds.explain()` shows a plan",
    ),
)

EXT: Final[Rows] = (("storage to", "no: extension types are read as the type that they are stored in"),)
