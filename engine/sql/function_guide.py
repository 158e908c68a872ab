"""The functions of SQL by what they are for: those of the reference, of completion, and of "did you mean".

    GUIDE["Dates and times"][0]    ("year month day ...", "year(d)", "parts, whole numbers")

A row has names that mean the same or belong together, an example, and what it is.

Held by: tests/sql/test_sql_page.py
"""

from __future__ import annotations

from typing import Final

Row = tuple[str, str, str]

GUIDE: Final[dict[str, tuple[Row, ...]]] = {
    "Conditions and nulls": (
        ("coalesce ifnull nvl", "coalesce(i, j, 0)", "the first value that is not null"),
        ("nullif", "nullif(i, 5)", "null where both are equal"),
        ("if iif iff", "if(i > 0, 'a', 'b')", "one value or the other"),
        ("nvl2", "nvl2(i, 1, 2)", "one value where there is one, the other where there is none"),
        ("isnull isnotnull", "isnull(i)", "`i IS NULL`; `i ISNULL` and `i NOTNULL`, too"),
        ("zeroifnull nullifzero", "zeroifnull(i)", "0 for null, null for 0"),
        ("equal_null", "equal_null(i, j)", "`i IS NOT DISTINCT FROM j`, or `i <=> j`"),
        ("least greatest", "greatest(i, j, 3)", "nulls are passed over"),
    ),
    "Numbers": (
        ("abs sign signum", "sign(i)", "-1, 0 or 1"),
        ("round", "round(f, 1)", "halves away from zero"),
        ("floor ceil ceiling trunc", "ceil(f)", "whole numbers"),
        ("mod pmod", "mod(i, j)", "the remainder: with the sign of `i`, as `%`; `pmod`: not negative"),
        ("sqrt cbrt exp e ln log2 log10", "sqrt(abs(f))", ""),
        ("log", "log(abs(f))", "to base 10; `log(b, x)` to base b"),
        ("pow power", "pow(f, 2)", "doubles"),
        ("sin cos tan cot asin acos atan atan2 degrees radians pi", "sin(f)", ""),
        ("xor bit_not shiftleft shiftright", "xor(i, j)", "and `&`, `|`, `<<`, `>>`"),
        ("isnan isinf isfinite", "isfinite(f)", ""),
        ("random rand", "random()", "another double for each row, from 0 to 1; in lists of SELECT"),
    ),
    "Texts": (
        ("length len char_length character_length", "length(s)", "characters; of a list its elements"),
        ("upper ucase lower lcase initcap", "upper(s)", ""),
        ("substring substr", "substr(s, -2)", "from 1; a negative start counts from the end"),
        ("left right", "left(s, 2)", ""),
        ("trim ltrim rtrim btrim", "trim(s)", "`trim(BOTH 'a' FROM s)`, too"),
        ("lpad rpad", "lpad(s, 5, '*')", "longer texts are cut"),
        ("concat", "concat(s, i, d)", "nulls are passed over; `||` gives null"),
        ("concat_ws", "concat_ws('-', s, p)", ""),
        ("format printf format_string", "format('{} is {}', s, i)", "`{}`, `%s` and `%d`"),
        ("replace", "replace(s, 'l', '')", ""),
        ("reverse repeat space", "repeat(s, 2)", ""),
        ("contains starts_with startswith prefix ends_with endswith suffix", "contains(s, 'b')", ""),
        ("strpos instr position locate charindex", "strpos(s, 'b')", "from 1, 0 where it is not"),
        ("split_part", "split_part(s, ',', 2)", "from 1"),
        ("string_split str_split split string_to_array", "string_split(s, ',')", "a list"),
        ("string_split_regex str_split_regex regexp_split_to_array", "string_split_regex(s, '[, ]')", "a list"),
        ("regexp_matches regexp_like rlike", "regexp_matches(s, 'l+')", "`s ~ 'l+'`, `s RLIKE 'l+'`, too"),
        ("regexp_full_match", "regexp_full_match(s, '[a-z]+')", ""),
        ("regexp_extract", "regexp_extract(s, '([a-z])([a-z])', 2)", "the whole match, or a group"),
        ("regexp_extract_all regexp_count", "regexp_extract_all(s, '[a-z]')", "a list; their number"),
        ("regexp_replace", "regexp_replace(s, 'l', 'L', 'g')", "the first match, with `'g'` all; `'i'`, too"),
        ("levenshtein editdist3", "levenshtein(s, 'abd')", ""),
        ("md5 sha256", "md5(s)", ""),
        ("json_extract_string get_json_object", "json_extract_string(js, '$.a')", "`js ->> '$.a'`, too"),
        ("url_decode", "url_decode('a%20b')", ""),
    ),
    "Dates and times": (
        ("year quarter month week weekofyear day dayofmonth hour minute second", "year(d)", "whole numbers"),
        ("millisecond microsecond decade century millennium isoyear", "decade(d)", ""),
        ("dayofweek weekday", "dayofweek(d)", "0 on Sunday"),
        ("isodow dayofyear", "isodow(d)", "1 on Monday"),
        ("date_part datepart", "date_part('dow', d)", "`EXTRACT(dow FROM d)`, too"),
        ("date_trunc datetrunc", "datetrunc('month', ts)", ""),
        ("date_diff datediff", "date_diff('month', d, e)", "borders between both; `datediff(e, d)`: days"),
        ("date_sub datesub timestampdiff", "date_sub('day', ts, te)", "whole units between both"),
        ("date_add dateadd timestampadd", "date_add(d, INTERVAL 3 DAY)", "or `d + INTERVAL 3 DAY`, `d + 3`"),
        ("to_days to_hours to_minutes to_seconds", "ts + to_hours(n)", "of columns: `d + INTERVAL (n) DAY`, too"),
        ("to_weeks to_milliseconds to_microseconds", "ts + to_milliseconds(n)", ""),
        ("to_months to_years add_months", "ts + to_years(2)", "a constant number"),
        ("last_day dayname monthname", "last_day(d)", ""),
        ("make_date", "make_date(2000+n, n, n)", ""),
        ("to_date date", "to_date(h)", "`CAST(h AS DATE)`, `h::DATE`"),
        ("strftime", "strftime(ts, '%Y-%m-%d')", "a text, by Python's directives"),
        ("strptime try_strptime", "strptime(h, '%Y-%m-%d')", "a timestamp; null where it is none with `try_`"),
        ("epoch epoch_ms epoch_us unix_timestamp", "epoch_ms(ts)", "since 1970"),
        ("from_unixtime make_timestamp", "from_unixtime(i)", "of seconds; of microseconds"),
        ("now current_date today", "current_date IS NOT NULL", "the moment of the query, in UTC"),
    ),
    "Lists and structs": (
        ("list_value array list_pack make_array", "list_value(i, j)", "`[i, j]`, too"),
        ("list_extract array_extract array_element", "list_extract(l, 1)", "`l[1]`; from 1, negative from the end"),
        ("list_slice array_slice", "list_slice(l, 1, 2)", "`l[1:2]`"),
        ("array_length cardinality size array_size", "array_length(l)", ""),
        ("list_contains list_has array_contains array_has", "list_contains(l, 2)", ""),
        ("list_has_any list_has_all", "list_has_any(l, [1, 5])", "of a list that is written"),
        ("list_sort array_sort sort_array list_reverse_sort", "list_sort(l)", ""),
        ("list_distinct array_distinct", "len(list_distinct([1, 2, 1, n]))", "in their order, a null among them"),
        ("list_sum list_avg list_min list_max array_min array_max", "list_sum(l)", "nulls are passed over"),
        ("list_concat list_append array_append list_prepend", "list_concat(l, l)", "null where a list is null"),
        ("list_first list_last", "list_first(l)", ""),
        ("array_to_string array_join", "array_to_string(ls, '-')", "nulls are left out"),
        ("struct_extract get_field", "struct_extract({'a': i}, 'a')", "`{'a': i}` makes a struct, `row(i, j)`, too"),
    ),
    "Aggregates": (
        ("count count_star count_if countif", "count_if(i > 0)", "`count(DISTINCT x)`, `FILTER (WHERE ...)`"),
        ("sum fsum kahan_sum sumkahan avg mean favg product", "sum(i)", ""),
        ("geomean geometric_mean", "geomean(abs(f))", "the geometric mean"),
        ("min max any_value", "min(s)", ""),
        ("first first_value last last_value", "first(i ORDER BY n)", "without an order of any row"),
        ("arg_min argmin min_by arg_max argmax max_by", "max_by(s, i)", "the value at the greatest key"),
        ("mode", "mode(b)", "the least of those that are there most often"),
        ("median quantile_cont percentile percentile_cont", "quantile_cont(f, 0.9)", "exact, between two values"),
        ("approx_quantile approx_percentile percentile_approx", "percentile_approx(n, 0.0)", "within 0.012 %"),
        ("approx_count_distinct", "approx_count_distinct(i)", "within a percent"),
        ("stddev stddev_samp stddev_pop std var_samp var_pop variance", "stddev(f)", ""),
        ("skewness kurtosis", "skewness(f)", ""),
        ("corr covar_samp covar_pop", "corr(f, i)", ""),
        ("regr_slope regr_intercept regr_r2 regr_count", "regr_slope(f, i)", "of y and x"),
        ("regr_avgx regr_avgy regr_sxx regr_sxy regr_syy", "regr_sxy(f,i)", ""),
        ("bool_and every bool_or", "bool_and(b)", ""),
        ("bit_and bit_or bit_xor", "bit_and(i)", ""),
        ("string_agg group_concat listagg", "string_agg(s, ',' ORDER BY n)", ""),
        ("array_agg list collect_list collect_set", "list(i ORDER BY n)", "`collect_set`: different ones"),
    ),
    "Windows": (
        ("row_number rank dense_rank percent_rank cume_dist", "row_number() OVER (ORDER BY n)", ""),
        ("ntile", "ntile(2) OVER (ORDER BY n)", ""),
        ("lag lead", "lag(i, 2, 0) OVER (ORDER BY n)", ""),
        ("first_value last_value nth_value", "nth_value(i, 2) OVER (ORDER BY n)", ""),
    ),
}
#: names of all functions
FUNCTION_NAMES: Final = tuple(
    sorted({name for rows in GUIDE.values() for names, _, _ in rows for name in names.split()})
)
