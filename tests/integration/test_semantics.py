"""Section by section what a user is promised of names, types, nulls, overflow, order and empty inputs."""

import datetime
import decimal
import functools
import math
import operator

import pyarrow as pa
import pytest

from engine import (
    EngineError,
    JobExecutionError,
    PlanError,
    SchemaError,
    avg,
    col,
    count,
    count_if,
    lit,
    max_,
    min_,
    sum_,
    when,
)
from tests.integration.row_oracle import assert_same_rows, rows_of

INT64_MAX = 2**63 - 1
D = decimal.Decimal


def integers(env, *values, data_type=None):
    return env.from_arrow(pa.table({"a": pa.array(values, data_type or pa.int64())}))


# ---- names


@pytest.mark.quick
def test_a_clash_of_names_in_a_join_is_an_error_that_names_the_column(environment):
    one = environment.from_arrow(pa.table({"k": [1], "value": [1]}))
    other = environment.from_arrow(pa.table({"k": [1], "value": [2]}))
    with pytest.raises(SchemaError, match="value"):
        one.join(other, on="k").collect()
    with pytest.raises(SchemaError, match="k"):
        one.select("k").join(other.select("k"), left_on="k", right_on="k").collect()
    assert one.join(other.select("k", col("value").alias("other")), on="k").collect() == [(1, 1, 2)]


@pytest.mark.quick
@pytest.mark.parametrize(
    "wrong",
    [
        lambda data: data.select("missing"),
        lambda data: data.filter(col("missing") > 1),
        lambda data: data.with_columns(x=col("missing")),
        lambda data: data.drop("missing"),
        lambda data: data.sort("missing"),
        lambda data: data.group_by("missing").agg(n=count()),
        lambda data: data.group_by("a").agg(n=sum_(col("missing"))),
        lambda data: data.join(data.select(col("a").alias("b")), left_on="missing", right_on="b"),
        lambda data: data.top(1, "missing"),
    ],
    ids=["select", "filter", "with_columns", "drop", "sort", "group_by", "agg", "join", "top"],
)
def test_a_column_that_is_not_there_is_an_error_when_the_plan_is_built(environment, wrong):
    with pytest.raises(SchemaError, match="missing"):
        wrong(integers(environment, 1))


@pytest.mark.quick
def test_two_output_columns_of_one_name_are_an_error(environment):
    with pytest.raises(SchemaError, match="a"):
        integers(environment, 1).select("a", (col("a") + 1).alias("a")).collect()
    with pytest.raises(SchemaError, match="a"):
        integers(environment, 1).group_by("a").agg(a=count()).collect()


@pytest.mark.quick
def test_types_without_a_common_one_are_an_error(environment):
    numbers = environment.from_arrow(pa.table({"a": [1]}))
    texts = environment.from_arrow(pa.table({"a": ["x"]}))
    for wrong in (
        lambda: numbers.union(texts),
        lambda: numbers.join(texts, on="a"),
        lambda: numbers.filter(col("a").is_in(["x"])),
        lambda: numbers.filter(col("a") == "x"),
        lambda: numbers.filter(col("a") + 1),
        lambda: texts.group_by().agg(s=sum_(col("a"))),
    ):
        with pytest.raises(SchemaError):
            wrong().collect()


@pytest.mark.quick
def test_a_union_of_different_columns_is_an_error(environment):
    with pytest.raises(SchemaError, match="b"):
        integers(environment, 1).union(environment.from_arrow(pa.table({"b": [1]}))).collect()


@pytest.mark.parametrize(
    "data_type", [pa.list_(pa.int64()), pa.struct([("x", pa.int64())]), pa.map_(pa.string(), pa.int64())], ids=str
)
def test_nested_types_are_refused_as_keys(environment, data_type):
    table = pa.table({"nested": pa.array([None], data_type), "n": [1]})
    data = environment.from_arrow(table)
    for wrong in (
        lambda: data.sort("nested"),
        lambda: data.group_by("nested").agg(n=count()),
        lambda: data.join(data.select("nested"), on="nested"),
        data.distinct,
    ):
        with pytest.raises(SchemaError, match="nested"):
            wrong().collect()
    assert data.count() == 1


# ---- numbers


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize(
    "expression",
    [col("a") + 1, col("a") * 2, lit(0) - col("a") - 2, (col("a") - 1) + 2, -(lit(0) - col("a") - 1)],
    ids=["add", "multiply", "subtract", "chain", "negate"],
)
def test_integer_overflow_is_an_error(any_environment, expression):
    with pytest.raises(JobExecutionError, match=r"(?i)overflow"):
        integers(any_environment, 1, INT64_MAX).select(expression.alias("x")).collect()


def test_the_overflow_of_a_sum_is_an_error_and_avg_is_exact(any_environment):
    data = integers(any_environment, INT64_MAX, 1, INT64_MAX, -5)
    with pytest.raises(JobExecutionError, match=r"(?i)overflow"):
        data.group_by().agg(s=sum_(col("a"))).collect()
    assert data.group_by().agg(m=avg(col("a"))).collect() == [((2 * INT64_MAX - 4) / 4,)]
    balanced = integers(any_environment, INT64_MAX, -INT64_MAX, 3)
    assert balanced.group_by().agg(s=sum_(col("a"))).collect() == [(3,)]


@pytest.mark.parametrize("data_type", [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32()], ids=str)
def test_integer_arithmetic_and_sums_widen_to_int64(environment, data_type):
    data = integers(environment, 127, 127, 1, data_type=data_type)
    result = data.select((col("a") + col("a")).alias("x"), (col("a") * 2).alias("y")).to_arrow()
    assert result.schema.types == [pa.int64(), pa.int64()]
    assert rows_of(result) == [(254, 254), (254, 254), (2, 2)]
    total = data.group_by().agg(s=sum_(col("a"))).to_arrow()
    assert total.schema.types == [pa.int64()]
    assert rows_of(total) == [(255,)]


def test_floor_division_and_remainder_floor_as_in_python(any_environment):
    pairs = [(a, b) for a in (-7, -6, -1, 0, 1, 6, 7, INT64_MAX, -INT64_MAX) for b in (-3, -2, -1, 1, 2, 3)]
    table = pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    data = any_environment.from_arrow(table).select(
        "a", "b", (col("a") // col("b")).alias("q"), (col("a") % col("b")).alias("r")
    )
    assert_same_rows(data.collect(), [(a, b, a // b, a % b) for a, b in pairs])
    floats = [(a, b) for a in (-7.5, -1.0, 0.0, 2.25, 7.5) for b in (-2.0, -0.5, 0.5, 3.0)]
    table = pa.table({"a": [a for a, _ in floats], "b": [b for _, b in floats]})
    data = any_environment.from_arrow(table).select(
        "a", "b", (col("a") // col("b")).alias("q"), (col("a") % col("b")).alias("r")
    )
    assert_same_rows(data.collect(), [(a, b, a // b, a % b) for a, b in floats])


def test_division_is_float_and_integer_division_by_zero_an_error(environment):
    data = integers(environment, 1, -1, 0)
    result = data.select((col("a") / 2).alias("x")).to_arrow()
    assert result.schema.types == [pa.float64()]
    assert result["x"].to_pylist() == [0.5, -0.5, 0.0]
    for expression in (lit(1) // col("a"), lit(1) % col("a")):
        with pytest.raises(JobExecutionError, match=r"(?i)zero"):
            data.select(expression.alias("x")).collect()


def test_decimals_keep_their_scale(any_environment):
    values = [D("1.10"), D("2.25"), None, D("-0.01")]
    data = any_environment.from_arrow(pa.table({"a": pa.array(values, pa.decimal128(10, 2))}))
    result = data.group_by().agg(s=sum_(col("a")), lo=min_(col("a")), hi=max_(col("a")), m=avg(col("a"))).to_arrow()
    assert all(pa.types.is_decimal(field.type) and field.type.scale == 2 for field in list(result.schema)[:3])
    assert rows_of(result) == [(D("3.34"), D("-0.01"), D("2.25"), 3.34 / 3)]
    added = data.select((col("a") + col("a")).alias("x")).filter(col("x") > D("4")).collect()
    assert added == [(D("4.50"),)]


# ---- empty inputs


@pytest.mark.quick
def test_an_aggregate_of_nothing_is_one_row_and_groups_of_nothing_are_none(any_environment):
    schema = pa.schema([("a", pa.int32()), ("f", pa.float64()), ("s", pa.string()), ("d", pa.decimal128(5, 1))])
    empty = any_environment.from_arrow(schema.empty_table())
    calls = {
        "rows": count(), "n": count(col("a")), "sa": sum_(col("a")), "sf": sum_(col("f")), "sd": sum_(col("d")),
        "aa": avg(col("a")), "lo": min_(col("s")), "hi": max_(col("d")),
    }  # fmt: skip
    assert empty.group_by().agg(**calls).collect() == [(0, 0, None, None, None, None, None, None)]
    assert empty.group_by("s").agg(**calls).collect() == []
    nulls = any_environment.from_rows([(None, None, None, None)] * 3, schema)
    assert nulls.group_by().agg(**calls).collect() == [(3, 0, None, None, None, None, None, None)]
    filtered = nulls.filter(col("a") > 0)
    assert filtered.group_by().agg(**calls).collect() == [(0, 0, None, None, None, None, None, None)]


def test_empty_inputs_pass_every_operator_with_their_schema(any_environment):
    schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
    empty = any_environment.from_arrow(schema.empty_table())
    full = any_environment.from_rows([(1, "x"), (2, None)], schema)
    assert empty.collect() == []
    assert empty.count() == 0
    assert empty.to_arrow().schema.equals(schema)
    assert empty.sort("k").limit(3).to_arrow().schema.equals(schema)
    assert empty.distinct().to_arrow().schema.equals(schema)
    renamed = full.select("k", col("s").alias("t"))
    assert empty.join(renamed, on="k").collect() == []
    assert renamed.join(empty, on="k").collect() == []
    assert_same_rows(renamed.join(empty, on="k", how="left").collect(), [(1, "x", None), (2, None, None)])
    assert empty.map(lambda row: (row.k,), pa.schema([("k", pa.int64())])).collect() == []
    assert_same_rows(empty.union(full).collect(), [(1, "x"), (2, None)])


def test_rows_without_columns_are_counted(environment):
    data = integers(environment, 1, 2, 3)
    assert data.filter(col("a") > 1).count() == 2
    assert data.group_by().agg(n=count()).collect() == [(3,)]


# ---- expressions


def test_when_takes_the_first_true_branch_and_null_without_otherwise(any_environment):
    data = integers(any_environment, 1, 2, 3, None)
    expression = when(col("a") > 2).then(lit("big")).when(col("a") > 1).then(lit("two"))
    assert_same_rows(
        data.select("a", expression.alias("x")).collect(), [(1, None), (2, "two"), (3, "big"), (None, None)]
    )
    widened = data.select(when(col("a") > 1).then(col("a")).otherwise(lit(0.5)).alias("x")).to_arrow()
    assert widened.schema.types == [pa.float64()]
    assert_same_rows(rows_of(widened), [(0.5,), (2.0,), (3.0,), (0.5,)])


@pytest.mark.quick
def test_logic_has_three_values(any_environment):
    rows = [(a, b) for a in (True, False, None) for b in (True, False, None)]
    data = any_environment.from_rows(rows, pa.schema([("a", pa.bool_()), ("b", pa.bool_())]))
    result = data.select(
        "a", "b", (col("a") & col("b")).alias("x"), (col("a") | col("b")).alias("y"), (~col("a")).alias("z")
    )

    def both(a, b):
        return False if a is False or b is False else None if a is None or b is None else True

    def either(a, b):
        return True if a or b else None if a is None or b is None else False

    expected = [(a, b, both(a, b), either(a, b), None if a is None else not a) for a, b in rows]
    assert_same_rows(result.collect(), expected)


def test_is_in_and_between_widen_and_know_nulls(environment):
    data = integers(environment, 1, 2, 3, None, data_type=pa.int32())
    assert sorted(data.filter(col("a").is_in([1, 3, 2**40])).collect()) == [(1,), (3,)]
    assert sorted(data.filter(col("a").between(2, 3)).collect()) == [(2,), (3,)]
    assert data.filter(col("a").is_in([])).collect() == []


def test_cast_is_exact_or_an_error(environment):
    data = environment.from_arrow(pa.table({"s": ["1", "2"], "f": [1.0, 2.5]}))
    assert data.select(col("s").cast(pa.int32()).alias("x")).to_arrow().schema.types == [pa.int32()]
    with pytest.raises(JobExecutionError):
        environment.from_arrow(pa.table({"s": ["1", "x"]})).select(col("s").cast(pa.int32()).alias("x")).collect()


def test_strings_as_python_has_them(environment):
    words = ["", "Abc", "  pad ", "äöü ß", "a.b", None, "\U0001f600x"]
    data = environment.from_arrow(pa.table({"s": pa.array(words)}))
    text = col("s").str
    result = data.select(
        text.length().alias("n"), text.upper().alias("u"), text.lower().alias("l"), text.strip().alias("t"),
        text.contains(".").alias("c"), text.starts_with("A").alias("b"), text.ends_with("b").alias("e"),
        text.replace("a", "-").alias("r"), text.slice(1, 3).alias("p"), text.concat(lit("!")).alias("k"),
    ).collect()  # fmt: skip
    expected = [
        (None,) * 10
        if w is None
        else (len(w), w.upper().replace("SS", "ß") if "ß" in w else w.upper(), w.lower(), w.strip(), "." in w,
              w.startswith("A"), w.endswith("b"), w.replace("a", "-"), w[1:3], w + "!")
        for w in words
    ]  # fmt: skip
    assert_same_rows([(row[0], *row[2:]) for row in result], [(row[0], *row[2:]) for row in expected])


def test_parts_of_times(environment):
    moments = [datetime.datetime(1969, 12, 31, 23, 59, 58), datetime.datetime(2024, 2, 29, 1, 2, 3), None]
    data = environment.from_arrow(pa.table({"t": pa.array(moments, pa.timestamp("us"))}))
    part = col("t").dt
    result = data.select(
        part.year().alias("y"), part.month().alias("m"), part.day().alias("d"), part.hour().alias("h"),
        part.minute().alias("i"), part.second().alias("s"),
    ).collect()  # fmt: skip
    expected = [(m.year, m.month, m.day, m.hour, m.minute, m.second) if m else (None,) * 6 for m in moments]
    assert_same_rows(result, expected)


@pytest.mark.quick
def test_an_expression_is_no_truth_value(environment):
    with pytest.raises((TypeError, EngineError)):
        bool(col("a") > 1)


# ---- the rest of the contract


@pytest.mark.quick
def test_execute_without_a_sink_is_an_error(open_environment):
    env = open_environment()
    integers(env, 1)
    with pytest.raises(PlanError, match=r"write_csv|sink"):
        env.execute()


@pytest.mark.quick
@pytest.mark.parametrize(
    "wrong",
    [
        lambda data: data.limit(-1),
        lambda data: data.top(-1, "a"),
        lambda data: data.sort([]),
        lambda data: data.sort("a", descending=[True, False]),
        lambda data: data.join(data, how="sideways", on="a"),
        lambda data: data.join(data.select(col("a").alias("b")), on="a", left_on="a", right_on="b"),
        lambda data: data.join(data.select(col("a").alias("b"))),
        lambda data: data.select(),
        lambda data: data.set_parallelism(0),
    ],
    ids=[
        "limit",
        "top",
        "sort nothing",
        "sort flags",
        "how",
        "on and left_on",
        "no keys",
        "select nothing",
        "parallelism",
    ],
)
def test_calls_without_a_meaning_are_errors_at_once(environment, wrong):
    with pytest.raises((EngineError, ValueError, TypeError)):
        wrong(integers(environment, 1))


@pytest.mark.quick
def test_unknown_settings_and_wrong_values_are_configuration_errors():
    from engine import ConfigurationError, Environment

    for config, text in (
        ({"parallelism.defalt": 2}, r"parallelism\.default"),
        ({"parallelism.default": 0}, r"parallelism\.default"),
        ({"taskmanager.memory.managed.size": "much"}, r"managed\.size"),
    ):
        with pytest.raises(ConfigurationError, match=text):
            Environment(config=config).from_arrow(pa.table({"a": [1]})).collect()


@pytest.mark.quick
def test_a_missing_input_is_an_error_that_names_it(environment, tmp_path):
    for read in (environment.read_csv, environment.read_parquet, environment.read_records):
        with pytest.raises(PlanError, match="nothing-here"):
            read(str(tmp_path / "nothing-here")).count()


def test_damaged_and_vanished_inputs_are_errors_that_name_the_file(environment, tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"a": [n * 7919 % 50_021 for n in range(50_000)]}), path, row_group_size=10_000)
    data = environment.read_parquet(path)
    content = bytearray(path.read_bytes())
    content[1000:40_000] = bytes(39_000)
    path.write_bytes(content)
    for run in (data.collect, lambda: environment.read_parquet(path).collect()):
        with pytest.raises(JobExecutionError, match=r"damaged\.parquet"):
            run()
    (tmp_path / "gone.csv").write_text("1\n")
    data = environment.read_csv(tmp_path / "gone.csv", schema=pa.schema([("a", pa.int64())]))
    (tmp_path / "gone.csv").unlink()
    with pytest.raises(PlanError, match=r"gone\.csv"):
        data.collect()
    assert integers(environment, 1).limit(10**30).count() == 1


def test_the_same_data_set_can_be_used_and_run_many_times(environment):
    data = integers(environment, 3, 1, 2)
    ordered = data.sort("a")
    assert ordered.collect() == ordered.collect() == [(1,), (2,), (3,)]
    assert data.count() == 3
    assert ordered.limit(1).collect() == [(1,)]


@pytest.mark.quick
def test_explain_names_every_operator_and_starts_nothing(environment, tmp_path):
    data = integers(environment, 1, 2).filter(col("a") > 1).group_by("a").agg(n=count()).sort("a")
    text = data.explain()
    for word in ("filter", "sort", "rows", "cost"):
        assert word in text.lower()


def test_an_environment_is_a_context_and_close_is_idempotent():
    from engine import Environment

    with Environment(config={"taskmanager.memory.process.size": "256mb", "parallelism.default": 1}) as env:
        assert integers(env, 1).collect() == [(1,)]
    env.close()


def test_a_loop_over_with_columns_may_be_long(environment):
    data = environment.from_rows([(1,), (2,)], pa.schema([("a", pa.int64())]))
    for _ in range(500):
        data = data.with_columns(a=col("a") + 1)
    assert sorted(row.a for row in data.collect()) == [501, 502]


def test_an_expression_that_is_nested_too_deep_says_what_to_do(environment):
    data = environment.from_rows([(1,)], pa.schema([("a", pa.int64())]))
    expression = col("a")
    for _ in range(190):
        expression = expression + col("a")
    assert data.select(expression.alias("b")).sort("b").collect()[0].b == 191
    expression = col("a")
    for _ in range(990):
        expression = -expression
    with pytest.raises(SchemaError, match=r"nested 991 deep, at most 200 .* a column by with_columns\(\) first"):
        data.select(expression.alias("b"))
    deep = functools.reduce(lambda inner, _: ~inner, range(1999), col("a") == 1)
    uses = [
        lambda: data.filter(deep),
        lambda: data.agg(x=count_if(deep)),
        lambda: data.agg(x=when(deep).then(sum_("a")).otherwise(0)),
        lambda: data.select(sum_("a").over(deep).alias("x")),
        lambda: data.sort(deep),
    ]
    for use in uses:
        with pytest.raises(SchemaError, match=r"nested 200\d deep, at most 200"):
            use()


# ---- NaN


def test_nan_is_equal_to_itself_and_the_greatest_in_filters_and_join_conditions(any_environment):
    edges = [None, math.nan, 0.0, -0.0, 1.5, math.inf, -math.inf]
    rows = [(i, x) for i, x in enumerate(edges) if x is not None]
    place = {i: (1, 0.0) if math.isnan(x) else (0, x + 0.0) for i, x in rows}
    table = pa.table({"i": range(len(edges)), "x": pa.array(edges, pa.float64())})
    left = any_environment.from_arrow(table)
    right = any_environment.from_arrow(table.rename_columns(["j", "y"]))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        compare = getattr(operator, name)
        wanted = [(i, j) for i, _ in rows for j, _ in rows if compare(place[i], place[j])]
        pairs = left.join(right, how="cross").filter(compare(col("x"), col("y"))).select("i", "j")
        assert sorted(pairs.collect()) == wanted
        kept = left.filter(compare(col("x"), math.nan)).select("i").collect()
        assert sorted(kept) == [(i,) for i, _ in rows if compare(place[i], place[1])]
