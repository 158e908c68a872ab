"""Relational operators over types, nulls, duplicates and skew, against plain Python and DuckDB."""

import pyarrow as pa
import pytest

from engine import JoinHint, PlanError, SchemaError, avg, col, count, lit, max_, min_, sum_
from tests.integration.row_oracle import (
    KEY_VALUES,
    assert_same_order,
    assert_same_rows,
    duck,
    key_table,
    plain,
    rows_of,
    sorted_rows,
)

ROWS = 240
TYPES = pytest.mark.parametrize("data_type", KEY_VALUES, ids=str)


@pytest.mark.quick
@pytest.mark.sample("values")
@TYPES
def test_rows_come_back_as_they_went_in(two_environments, data_type):
    table = key_table(data_type, ROWS)
    result = two_environments.from_arrow(table).to_arrow()
    assert result.schema.equals(table.schema)
    assert_same_rows(rows_of(result), rows_of(table))


@pytest.mark.quick
@pytest.mark.sample("values")
@TYPES
@pytest.mark.parametrize("nulls_last", [False, True])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_total_by_key_and_number(two_environments, data_type, descending, nulls_last):
    table = key_table(data_type, ROWS)
    by = two_environments.from_arrow(table).sort(["k", "n"], descending=[descending, False], nulls_last=nulls_last)
    result = by.to_arrow()
    assert result.schema.equals(table.schema)
    # -0.0 and 0.0 are one key, so their rows may be in any order of n between them: compare the bits no closer
    rows = [tuple(0.0 if value == 0 and isinstance(value, float) else value for value in row) for row in rows_of(table)]
    assert_same_order(rows_of(result), sorted_rows(rows, [0, 1], [descending, False], nulls_last))


def grouped(rows):
    groups = {}
    for key, number in rows:
        groups.setdefault(plain(key), (key, []))[1].append(number)
    for key, numbers in groups.values():
        known = [number for number in numbers if number is not None]
        yield (
            key,
            len(numbers),
            len(known),
            sum(known) if known else None,
            min(known, default=None),
            max(known, default=None),
        )


@pytest.mark.quick
@pytest.mark.sample("values")
@TYPES
def test_groups_of_every_type_with_nulls_as_one_group(two_environments, data_type):
    table = key_table(data_type, ROWS)
    number = col("n")
    result = (
        two_environments.from_arrow(table)
        .group_by("k")
        .agg(rows=count(), known=count(number), total=sum_(number), least=min_(number), most=max_(number))
        .to_arrow()
    )
    int64 = pa.int64()
    names = ["rows", "known", "total", "least", "most"]
    assert result.schema.equals(pa.schema([("k", data_type), *((name, int64) for name in names)]))
    assert_same_rows(rows_of(result), grouped(rows_of(table)))


@pytest.mark.sample("values")
@TYPES
def test_min_and_max_of_every_type(two_environments, data_type):
    table = key_table(data_type, ROWS)
    data = two_environments.from_arrow(table).with_columns(g=col("n") % lit(5))
    result = data.group_by("g").agg(least=min_(col("k")), most=max_(col("k")), known=count(col("k"))).to_arrow()
    assert result.schema.field("least").type == data_type
    groups = {}
    for key, number in rows_of(table):
        groups.setdefault(None if number is None else number % 5, []).append(key)
    expected = []
    for group, keys in groups.items():
        ordered = sorted_rows([(key,) for key in keys if key is not None], [0])
        ends = (ordered[0][0], ordered[-1][0]) if ordered else (None, None)
        expected.append((group, *ends, len(ordered)))
    assert_same_rows(rows_of(result), expected)


@pytest.mark.sample("values")
@TYPES
def test_distinct_keeps_one_of_equal_rows(two_environments, data_type):
    table = key_table(data_type, ROWS).select(["k"])
    result = two_environments.from_arrow(table).distinct().to_arrow()
    assert result.schema.equals(table.schema)
    assert_same_rows(rows_of(result), {plain(key): (key,) for (key,) in rows_of(table)}.values())


def joined(left, right, how):
    for key, number in left:
        matches = [tag for other, tag in right if key is not None and other is not None and plain(key) == plain(other)]
        for tag in matches or ([None] if how == "left" else []):
            yield (key, number, tag)
    if how == "right":
        keys = {plain(key) for key, _ in left if key is not None}
        yield from ((key, None, tag) for key, tag in right if key is None or plain(key) not in keys)


@pytest.mark.quick
@pytest.mark.sample("pairs")
@TYPES
@pytest.mark.parametrize("how", ["inner", "left", "right"])
@pytest.mark.parametrize("ship", ["broadcast", "repartition"])
def test_join_on_keys_of_every_type_never_matches_nulls(two_environments, data_type, how, ship):
    hint = JoinHint.REPARTITION_HASH_SECOND
    if ship == "broadcast":
        hint = JoinHint.BROADCAST_HASH_FIRST if how == "right" else JoinHint.BROADCAST_HASH_SECOND
    table = key_table(data_type, 120)
    keys = [*KEY_VALUES[data_type][:-1], KEY_VALUES[data_type][0], None, None]
    other = pa.table({"k": pa.array(keys, data_type), "tag": [f"t{index}" for index in range(len(keys))]})
    result = two_environments.from_arrow(table).join(two_environments.from_arrow(other), on="k", how=how, hint=hint)
    actual = result.to_arrow()
    assert actual.schema.equals(pa.schema([("k", data_type), ("n", pa.int64()), ("tag", pa.string())]))
    assert_same_rows(rows_of(actual), joined(rows_of(table), rows_of(other), how))


#: a broadcast of the side whose rows without match are kept would return those in every subtask
WRONG_PAIRS = {("left", JoinHint.BROADCAST_HASH_FIRST), ("right", JoinHint.BROADCAST_HASH_SECOND)}


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("hint", [h for h in JoinHint if h != "REPARTITION_SORT_MERGE"], ids=lambda hint: hint.value)
@pytest.mark.parametrize("how", ["inner", "left", "right"])
def test_every_hint_gives_the_same_rows(any_environment, how, hint):
    left = pa.table({"a": [1, 2, 2, None, 3, 1] * 20, "x": range(120)})
    right = pa.table({"a": [1, 1, 2, 4, None], "y": ["p", "q", "r", "s", "t"]})
    data = any_environment.from_arrow(left).join(any_environment.from_arrow(right), on="a", how=how, hint=hint)
    if (how, hint) in WRONG_PAIRS:
        with pytest.raises(PlanError, match=hint.value):
            data.collect()
        return
    sql = f"SELECT a, x, y FROM l {how} JOIN r USING (a)"
    assert_same_rows(data.collect(), duck(sql, l=left, r=right))


def test_join_on_several_keys_of_mixed_types(any_environment):
    rows = [(n % 3 or None, "ab"[n % 2], n / 2, n) for n in range(60)]
    names = ["i", "s", "f", "n"]
    left = pa.table([pa.array(column) for column in zip(*rows, strict=True)], names)
    right = left.slice(0, 20).rename_columns(["i", "s", "f", "m"])
    sql = "SELECT l.i, l.s, l.f, l.n, r.m FROM l JOIN r ON l.i = r.i AND l.s = r.s"
    with pytest.raises(SchemaError, match="'f'"):
        any_environment.from_arrow(left).join(any_environment.from_arrow(right), on=["s", "i"]).collect()
    data = any_environment.from_arrow(left).join(any_environment.from_arrow(right).drop("f"), on=["s", "i"])
    assert data.to_arrow().column_names == ["i", "s", "f", "n", "m"]
    assert_same_rows(data.collect(), duck(sql, l=left, r=right))


def test_left_on_and_right_on_keep_both_keys(any_environment):
    left = pa.table({"a": [1, 2, None], "x": ["p", "q", "r"]})
    right = pa.table({"b": [2, 2, None], "y": [20, 21, 22]})
    data = any_environment.from_arrow(left).join(
        any_environment.from_arrow(right), left_on="a", right_on="b", how="left"
    )
    assert data.to_arrow().column_names == ["a", "x", "b", "y"]
    assert_same_rows(data.collect(), [(1, "p", None, None), (2, "q", 2, 20), (2, "q", 2, 21), (None, "r", None, None)])


def test_keys_of_two_types_keep_that_of_the_left(any_environment):
    left = pa.table({"k": pa.array([1, -1, 7, None], pa.int32()), "x": [1, 2, 3, 4]})
    right = pa.table({"k": pa.array([1, -1, 2**40, None], pa.int64()), "y": [1, 2, 3, 4]})
    for one, other in ((left, right), (right.rename_columns(["k", "y"]), left)):
        data = any_environment.from_arrow(one).join(any_environment.from_arrow(other), on="k").to_arrow()
        assert data.schema.field("k").type == one.schema.field("k").type
        assert_same_rows(rows_of(data), [(1, 1, 1), (-1, 2, 2)])
    floats = pa.table({"k": pa.array([1.0, -0.0, float("nan")], pa.float32()), "z": [1, 2, 3]})
    data = any_environment.from_arrow(left.slice(0, 1)).join(any_environment.from_arrow(floats), on="k").to_arrow()
    assert data.schema.field("k").type == pa.int32()
    assert rows_of(data) == [(1, 1, 1)]


@pytest.mark.quick
def test_union_is_union_all_by_name_and_widens(any_environment):
    one = pa.table({"a": pa.array([1, 1, None], pa.int32()), "b": ["x", "y", None]})
    other = pa.table({"b": ["x", "z"], "a": pa.array([1, 2**40], pa.int64())})
    result = any_environment.from_arrow(one).union(any_environment.from_arrow(other)).to_arrow()
    assert result.schema.equals(pa.schema([("a", pa.int64()), ("b", pa.string())]))
    assert_same_rows(rows_of(result), [(1, "x"), (1, "y"), (None, None), (1, "x"), (2**40, "z")])


ITEMS = pa.list_(pa.int32())
ELEMENTS = pa.list_(pa.field("element", pa.int32()))


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        (ITEMS, ELEMENTS, [1, None]),
        (pa.struct([("a", ELEMENTS)]), pa.struct([("a", ITEMS)]), {"a": [1]}),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.field("k", pa.string(), False), pa.int32()), [("a", 1)]),
    ],
)
def test_union_of_nested_types_that_differ_in_inner_names_alone(any_environment, first, second, value):
    """Parquet's lists have elements, those that Python makes have items."""
    one, other = (
        any_environment.from_arrow(pa.table({"v": pa.array([value, None], data_type)})) for data_type in (first, second)
    )
    both = one.union(other, one).shuffle().to_arrow()
    assert both.schema.field("v").type == first
    assert_same_rows(rows_of(both), [(value,), (None,)] * 3)


def test_union_of_a_thing_with_itself_and_of_empty_ones(any_environment):
    table = pa.table({"a": [1, 2, 3]})
    data = any_environment.from_arrow(table)
    assert_same_rows(data.union(data).collect(), [(1,), (2,), (3,)] * 2)
    empty = any_environment.from_arrow(table.slice(0, 0))
    assert_same_rows(data.union(empty).collect(), [(1,), (2,), (3,)])
    assert empty.union(empty).collect() == []


def test_select_filter_with_columns_drop_rename_like_duckdb(any_environment):
    table = key_table(pa.string(), ROWS)
    data = (
        any_environment.from_arrow(table)
        .filter(col("k").is_not_null() & ((col("n") > lit(0)) | col("n").is_null()))
        .with_columns(m=col("n") * 2 + 1, size=col("k").str.length())
        .select("m", "k", "size", (col("n") / 4).alias("quarter"), "n")
        .drop("n")
    )
    sql = "SELECT n * 2 + 1, k, length(k), n / 4.0::DOUBLE FROM t WHERE k IS NOT NULL AND (n > 0 OR n IS NULL)"
    assert data.to_arrow().column_names == ["m", "k", "size", "quarter"]
    assert_same_rows(data.collect(), duck(sql, t=table))


def test_a_filter_drops_rows_whose_predicate_is_null(any_environment):
    data = any_environment.from_rows([(1,), (None,), (-1,)], pa.schema([("a", pa.int64())]))
    assert data.filter(col("a") > 0).collect() == [(1,)]
    assert data.filter(~(col("a") > 0)).collect() == [(-1,)]
    assert data.filter(lit(True)).count() == 3


def test_with_columns_replaces_a_column_in_its_place(any_environment):
    data = any_environment.from_rows([(1, "x")], pa.schema([("a", pa.int64()), ("b", pa.string())]))
    result = data.with_columns(a=col("a") + 1, c=lit(None).cast(pa.float64())).to_arrow()
    assert result.schema.equals(pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())]))
    assert rows_of(result) == [(2, "x", None)]


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("limit", [0, 1, 7, ROWS, ROWS + 1])
def test_limit_is_global(any_environment, limit):
    table = key_table(pa.int32(), ROWS)
    data = any_environment.from_arrow(table).limit(limit)
    result = rows_of(data.to_arrow())
    assert len(result) == min(limit, ROWS) == data.count()
    from collections import Counter

    assert not Counter(map(str, result)) - Counter(map(str, rows_of(table)))


def test_order_survives_select_filter_and_limit_and_top_is_sort_and_limit(any_environment):
    table = pa.table({"a": [(n * 7919) % 1000 for n in range(1000)], "b": [str(n) for n in range(1000)]})
    data = any_environment.from_arrow(table)
    ordered = data.sort("a", descending=True).filter(col("a") % 2 == 0).select("b", "a").limit(37)
    expected = sorted((row for row in rows_of(table) if row[0] % 2 == 0), reverse=True)[:37]
    assert ordered.collect() == [(b, a) for a, b in expected]
    assert rows_of(ordered.to_arrow()) == [(b, a) for a, b in expected]
    assert [row.a for row in data.top(5, "a").collect()] == [999, 998, 997, 996, 995]
    assert [row.a for row in data.top(5, "a", descending=False).collect()] == [0, 1, 2, 3, 4]
    mapped = data.sort("a").map(lambda row: (row.a,), pa.schema([("a", pa.int64())])).limit(50)
    assert mapped.collect() == [(n,) for n in range(50)]


def test_sort_by_several_keys_in_different_directions(any_environment):
    table = pa.table({"a": [n % 4 or None for n in range(200)], "b": [f"{n % 7}" for n in range(200)], "c": range(200)})
    data = any_environment.from_arrow(table).sort(["a", "b", "c"], descending=[True, False, True], nulls_last=True)
    sql = "SELECT * FROM t ORDER BY a DESC NULLS LAST, b ASC NULLS LAST, c DESC NULLS LAST"
    assert data.collect() == duck(sql, t=table)


def test_a_sort_of_a_sort_and_a_sort_of_groups(any_environment):
    table = pa.table({"a": [n % 10 for n in range(300)], "b": range(300)})
    data = any_environment.from_arrow(table).sort("b").group_by("a").agg(total=sum_(col("b")), rows=count())
    assert data.sort("total", descending=True).limit(3).collect() == duck(
        "SELECT a, sum(b)::BIGINT t, count(*) FROM t GROUP BY a ORDER BY t DESC LIMIT 3", t=table
    )
    resorted = any_environment.from_arrow(table).sort("a").sort("b", descending=True).select("b").collect()
    assert resorted == [(n,) for n in reversed(range(300))]


def test_aggregates_over_columns_like_duckdb(any_environment):
    table = pa.table(
        {
            "g": pa.array([n % 5 or None for n in range(400)], pa.int16()),
            "h": [f"h{n % 3}" for n in range(400)],
            "i": pa.array([n if n % 6 else None for n in range(400)], pa.int32()),
            "f": [n / 4 if n % 4 else None for n in range(400)],
        }
    )
    data = (
        any_environment.from_arrow(table)
        .group_by("g", "h")
        .agg(n=count(), k=count(col("i")), si=sum_(col("i") + 1), sf=sum_(col("f")), ai=avg(col("i")), af=avg(col("f")))
    )
    sql = "SELECT g, h, count(*), count(i), sum(i + 1)::BIGINT, sum(f), avg(i), avg(f) FROM t GROUP BY ALL"
    result = data.to_arrow()
    assert [str(field.type) for field in result.schema] == [
        "int16", "string", "int64", "int64", "int64", "double", "double", "double",
    ]  # fmt: skip
    rounded = [tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows_of(result)]
    expected = [tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in duck(sql, t=table)]
    assert_same_rows(rounded, expected)


def test_many_groups_with_long_keys(any_environment):
    table = pa.table({"k": [f"{'key' * (n % 40)} {n % 3000}" for n in range(9000)], "v": range(9000)})
    data = any_environment.from_arrow(table).group_by("k").agg(total=sum_(col("v")), least=min_(col("k")))
    assert_same_rows(data.collect(), duck("SELECT k, sum(v)::BIGINT, min(k) FROM t GROUP BY k", t=table))


@pytest.mark.thorough
def test_wide_rows_and_many_rows_go_through_every_operator(any_environment):
    table = pa.table(
        {"k": [n % 50 for n in range(300)], "blob": [chr(97 + n % 26) * (n * 211 % 70_000) for n in range(300)]}
    )
    data = any_environment.from_arrow(table)
    ordered = data.sort(["blob", "k"]).to_arrow()
    assert rows_of(ordered) == sorted(rows_of(table), key=lambda row: (row[1], row[0]))
    other = pa.table({"k": range(50), "name": [f"n{n}" for n in range(50)]})
    for hint in (JoinHint.REPARTITION_HASH_FIRST, JoinHint.REPARTITION_HASH_SECOND):
        joined = data.join(any_environment.from_arrow(other), on="k", hint=hint)
        assert_same_rows(joined.collect(), [(k, blob, f"n{k}") for k, blob in rows_of(table)])
    assert_same_rows(data.distinct().collect(), rows_of(table))


def test_nested_values_travel_through_sort_join_and_shuffle(any_environment):
    schema = pa.schema(
        [("k", pa.int64()), ("l", pa.list_(pa.int32())), ("s", pa.struct([("a", pa.string()), ("b", pa.float64())]))]
    )
    rows = [
        (n % 7, None if n % 5 == 0 else list(range(n % 4)), {"a": f"{n}", "b": None} if n % 3 else None)
        for n in range(90)
    ]
    data = any_environment.from_rows(rows, schema)
    assert_same_rows(data.sort("k").collect(), rows)
    names = any_environment.from_rows(
        [(n, str(n)) for n in range(5)], pa.schema([("k", pa.int64()), ("t", pa.string())])
    )
    joined = data.join(names, on="k", hint=JoinHint.REPARTITION_HASH_SECOND)
    assert_same_rows(joined.collect(), [(*row, str(row[0])) for row in rows if row[0] < 5])
    assert joined.to_arrow().schema.field("l").type == pa.list_(pa.int32())


def test_deep_plans(environment):
    data = environment.from_arrow(pa.table({"a": range(100)}))
    for step in range(40):
        data = data.with_columns(a=col("a") + 1) if step % 2 else data.filter(col("a") >= 0)
    assert sorted(data.collect()) == [(n + 20,) for n in range(100)]


def test_count_and_show(environment, capsys):
    data = environment.from_rows([(1, "x"), (None, None)], pa.schema([("num", pa.int64()), ("text", pa.string())]))
    assert data.count() == 2
    data.show()
    shown = capsys.readouterr().out
    assert "num" in shown
    assert "text" in shown
    assert "x" in shown


def test_collect_returns_named_rows(environment):
    (row,) = environment.from_rows([(1, "x")], pa.schema([("num", pa.int64()), ("text", pa.string())])).collect()
    number, text = row
    assert (row.num, row["text"], number, text) == (1, "x", 1, "x")


def test_to_pandas(environment):
    frame = environment.from_arrow(pa.table({"a": [1, 2], "b": ["x", None]})).sort("a").to_pandas()
    assert list(frame.columns) == ["a", "b"]
    assert frame["a"].tolist() == [1, 2]


@pytest.mark.parametrize("library", ["polars", "pandas", "duckdb"])
def test_from_arrow_takes_what_others_have(environment, library):
    if library == "polars":
        import polars

        source = polars.DataFrame({"a": [1, 2], "b": ["x", None]})
    elif library == "pandas":
        import pandas

        source = pandas.DataFrame({"a": [1, 2], "b": ["x", None]})
    else:
        import duckdb

        source = duckdb.sql("SELECT * FROM (VALUES (1::BIGINT, 'x'), (2, NULL)) t(a, b)")
    data = environment.from_arrow(source)
    assert sorted(data.collect()) == [(1, "x"), (2, None)]
    assert data.filter(col("b").is_not_null()).count() == 1


def test_a_frame_with_values_of_several_types_is_refused_with_the_column(environment):
    import pandas

    with pytest.raises(SchemaError, match=r"no one type \(Could not convert 'a'.* for column v .*astype"):
        environment.from_arrow(pandas.DataFrame({"v": [1, "a"]}))
