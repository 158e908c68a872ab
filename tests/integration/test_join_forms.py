"""The forms in which people write joins: spellings, suffixes, expressions as keys, conditions alone, null-safe keys."""

import doctest
import itertools

import pyarrow as pa
import pytest

import engine
from engine import JobExecutionError, approx_quantile, col, median
from engine.api.data_set import DataSet
from engine.api.join_arguments import join_type
from engine.errors import SchemaError
from engine.graph.said_operators import JoinType
from tests.integration.row_oracle import assert_same_rows, duck, rows_of

LEFT = pa.table({"a": [1, 2, None, 4, None, 2], "b": ["x", None, "y", None, None, "z"], "n": [1, 2, 3, 4, 5, 6]})
RIGHT = pa.table({"a": [2, 12, None, 7], "b": ["z", None, "y", "x"], "m": [10, 20, 30, 40]})
EMPTY = RIGHT.slice(0, 0)


@pytest.fixture(scope="module", params=[1, 2])
def env(request, open_environment):
    return open_environment(**{"parallelism.default": request.param})


@pytest.fixture
def left(env):
    return env.from_arrow(LEFT)


@pytest.fixture
def right(env):
    return env.from_arrow(RIGHT)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("inner", JoinType.INNER),
        ("left_outer", JoinType.LEFT),
        ("leftouter", JoinType.LEFT),
        ("right outer", JoinType.RIGHT),
        ("outer", JoinType.FULL),
        ("FULL_OUTER", JoinType.FULL),
        ("fullouter", JoinType.FULL),
        ("leftsemi", JoinType.SEMI),
        ("left_anti", JoinType.ANTI),
        ("left-anti", JoinType.ANTI),
        ("crossjoin", JoinType.CROSS),
        ("inner join", JoinType.INNER),
    ],
)
def test_types_are_known_by_the_spellings_of_others(word, kind):
    assert join_type(word) is kind


@pytest.mark.parametrize(
    ("word", "hint"),
    [("asof", "asof_join"), ("rightsemi", "exchange"), ("lefty", "choose one of inner"), (1, "choose")],
)
def test_another_word_is_answered_with_those_that_there_are(word, hint):
    with pytest.raises(SchemaError, match=hint):
        join_type(word)


def test_a_suffix_renames_right_columns_that_the_left_has_too(left, right):
    joined = left.join(right, on="a", suffix="_right", condition=col("b") != col("b_right"))
    assert joined.columns == ["a", "b", "n", "b_right", "m"]
    assert_same_rows(rows_of(joined.to_arrow()), [])
    both = left.join(right, left_on="a", right_on="a", suffix="_r", how="left")
    assert both.columns == ["a", "b", "n", "a_r", "b_r", "m"]
    expected = duck("SELECT * FROM l LEFT JOIN r ON l.a = r.a", l=LEFT, r=RIGHT)
    assert_same_rows(rows_of(both.to_arrow()), expected)
    assert left.join(right, how="cross", suffix="2").columns == ["a", "b", "n", "a2", "b2", "m"]


def test_a_suffix_that_makes_a_name_which_is_there_is_refused(left, right):
    with pytest.raises(SchemaError, match="there is a column 'b_x' already"):
        left.rename(n="b_x").join(right, on="a", suffix="_x")
    with pytest.raises(SchemaError, match="suffix=''"):
        left.join(right, on="a", suffix="")


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_a_condition_may_stand_alone(left, right, how):
    joined = left.join(right, how=how, condition=(col("a") < col("a_r")) & (col("n") > 1), suffix="_r")
    shown = "l.*" if how in ("semi", "anti") else "l.*, r.*"
    expected = duck(f"SELECT {shown} FROM l {how} JOIN r ON l.a < r.a AND l.n > 1", l=LEFT, r=RIGHT)
    assert_same_rows(rows_of(joined.to_arrow()), expected)


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_keys_may_be_expressions(left, right, how):
    other = right.rename(a="c", b="d")
    joined = left.join(other, left_on=col("a") % 10, right_on=[col("c") % 10], how=how)
    shown = "l.*" if how in ("semi", "anti") else "l.*, r.*"
    expected = duck(f"SELECT {shown} FROM l {how} JOIN r ON l.a % 10 = r.a % 10", l=LEFT, r=RIGHT)
    assert_same_rows(rows_of(joined.to_arrow()), expected)


def test_an_expression_may_be_a_key_of_both_sides(left, right):
    found = left.join(right, on=["b", col("a") % 10], how="inner", suffix="_r")
    assert found.columns == ["a", "b", "n", "a_r", "m"]
    assert_same_rows(rows_of(found.to_arrow()), [(2, "z", 6, 2, 10)])


def test_a_column_may_be_the_partner_of_two(left, right):
    joined = left.join(right.rename(a="c", b="d"), left_on=["a", "a"], right_on=["c", "m"], how="semi")
    assert joined.count() == 0
    with pytest.raises(SchemaError, match="given twice"):
        left.join(right, on=["a", "a"])


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("form", ["on", "both", "first"])
def test_null_equals_null_in_null_safe_keys(left, right, how, form):
    second = "IS NOT DISTINCT FROM" if form != "first" else "="
    where = f"l.a IS NOT DISTINCT FROM r.a AND l.b {second} r.b"
    if form == "on":
        joined = left.join(right, on=["a", "b"], how=how, null_safe=True)
        shown = "coalesce(l.a, r.a), coalesce(l.b, r.b), n, m"
    else:
        flags = True if form == "both" else [True, False]
        other = right.rename(a="c", b="d")
        joined = left.join(other, left_on=["a", "b"], right_on=["c", "d"], how=how, null_safe=flags)
        shown = "l.*, r.*"
    shown = "l.*" if how in ("semi", "anti") else shown
    assert_same_rows(
        rows_of(joined.to_arrow()), duck(f"SELECT {shown} FROM l {how} JOIN r ON {where}", l=LEFT, r=RIGHT)
    )


def test_null_safe_says_what_it_takes(left, right):
    with pytest.raises(SchemaError, match="one of them for each of 1 keys"):
        left.join(right, on="a", null_safe=[True, False], suffix="_r")


def not_in(lefts, rights, condition=lambda _left, _right: True):
    """Return the left rows whose (a, b) is not in those of the right, as SQL means it."""

    def may_be_equal(one, other):
        return all(x is None or y is None or x == y for x, y in zip(one[:2], other[:2], strict=True))

    return [row for row in lefts if not any(may_be_equal(row, other) for other in rights if condition(row, other))]


@pytest.mark.parametrize("case", list(itertools.product(["on", "both"], ["all", "none", "without nulls"])), ids=str)
def test_not_in_by_several_keys(env, case):
    form, rows = case
    table = {"all": RIGHT, "none": EMPTY, "without nulls": RIGHT.take([0, 3])}[rows]
    left, right = env.from_arrow(LEFT), env.from_arrow(table)
    if form == "on":
        found = left.join(right, on=["a", "b"], how="anti", null_aware=True)
    else:
        other = right.rename(a="c", b="d")
        found = left.join(other, left_on=["a", "b"], right_on=["c", "d"], how="anti", null_aware=True)
    assert_same_rows(rows_of(found.to_arrow()), not_in(rows_of(LEFT), rows_of(table)))


def test_not_in_with_a_condition(left, right):
    found = left.join(right, on=["a", "b"], how="anti", null_aware=True, condition=col("n") * 10 > col("m"))
    expected = not_in(rows_of(LEFT), rows_of(RIGHT), lambda row, other: row[2] * 10 > other[2])
    assert_same_rows(rows_of(found.to_arrow()), expected)
    one = left.select("a", "n").join(right, on="a", how="anti", null_aware=True, condition=col("n") * 10 > col("m"))
    sql = "SELECT a, n FROM l WHERE a NOT IN (SELECT a FROM r WHERE l.n * 10 > m)"
    assert_same_rows(rows_of(one.to_arrow()), duck(sql, l=LEFT, r=RIGHT))


@pytest.mark.parametrize("method", ["join", "asof_join"])
def test_the_examples_are_true(env, method):
    names = {name: getattr(engine, name) for name in engine.__all__} | {"pa": pa, "env": env}
    (test,) = doctest.DocTestFinder(recurse=False).find(getattr(DataSet, method), method, globs=names)
    assert test.examples
    report = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    assert not report, "".join(report)


def test_integers_that_no_float_is_equal_to_are_widened_to_the_nearest(env):
    big = 2**53 + 1
    whole = env.from_arrow(pa.table({"x": pa.array([big, 1, None], pa.int64())}))
    parts = env.from_arrow(pa.table({"x": pa.array([2.0**53, 0.5], pa.float64())}))
    assert sorted(row.x or 0.0 for row in whole.union(parts).collect()) == [0.0, 0.5, 1.0, 2.0**53, 2.0**53]
    assert whole.filter(col("x") == 2.0**53).collect() == [(big,)]
    found = whole.agg(m=median("x"), most=approx_quantile("x", 1.0)).collect()[0]
    assert (found.m, found.most) == (2.0**52 + 1, 2.0**53)
    with pytest.raises(JobExecutionError, match="not in range"):
        whole.select(x=col("x").cast(float)).collect()


@pytest.mark.parametrize("own", [pa.int32(), pa.int64(), pa.decimal128(14, 2), pa.string(), pa.date32()], ids=str)
def test_a_filter_by_another_data_set_keeps_the_types_of_its_rows(env, own):
    other = {pa.int32(): pa.int64(), pa.string(): pa.large_string(), pa.date32(): pa.timestamp("us")}
    wider = other.get(own, pa.float64())
    values = pa.array([1, 2, None, 3], pa.int32())
    table = pa.table({"x": (values.cast(pa.int64()) if own == pa.string() else values).cast(own), "n": [0, 1, 2, 3]})
    listed = pa.table({"x": table["x"].slice(1, 1).cast(wider)})
    rows, some = env.from_arrow(table), env.from_arrow(listed)
    twice = env.from_arrow(listed.append_column("y", listed["x"]))
    matched = [1]
    not_in = []
    if own != pa.int64():  # test_keys_of_two_types.py shows what it says beside doubles
        not_in += [
            (rows.join(some, on="x", how="anti", null_aware=True), [0, 3]),
            (rows.join(twice, left_on=["x", "x"], right_on=["x", "y"], how="anti", null_aware=True), [0, 3]),
        ]
    for found, wanted in [
        (rows.join(some, on="x", how="semi"), matched),
        (rows.join(some, on="x", how="anti"), [0, 2, 3]),
        *not_in,
        (rows.join(some, on="x", how="semi", null_safe=True), matched),
        (rows.join(some, on="x", how="semi", condition=col("n") > 0), matched),
        (rows.filter(col("x").is_in(some)), matched),
        (rows.filter(~col("x").is_in(some)), [0, 3]),
        (rows.filter(col("x").is_in(some) | (col("n") == 3)), [1, 3]),
        (rows.with_columns(m=col("x").is_in(some)).filter(col("m")).drop("m"), matched),
    ]:
        assert found.schema.types == table.schema.types
        assert_same_rows(rows_of(found.to_arrow()), rows_of(table.take(wanted)))


def test_a_filter_by_doubles_compares_as_equals_does_and_keeps_the_integers(env):
    big = 2**53 + 1
    rows = env.from_arrow(pa.table({"x": [big, 1]}))
    some = env.from_arrow(pa.table({"x": [2.0**53]}))
    assert rows.filter(col("x").is_in(some)).collect() == [(big,)]
    assert rows.filter(~col("x").is_in(some)).collect() == [(1,)]
    assert rows.filter(col("x") == 2.0**53).collect() == [(big,)]
