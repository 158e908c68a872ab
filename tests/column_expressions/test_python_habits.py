"""What Python does with values that are not there yet is an error that says what to write."""

import pyarrow as pa
import pytest

import engine
from engine import user_warnings
from engine.column_expressions.expressions import col, when
from engine.errors import DreyWarning, SchemaError
from engine.user_warnings import near_place


@pytest.fixture
def rows(env):
    return env.from_rows([(1, "x")], pa.schema([("a", pa.int64()), ("b", pa.string())]))


@pytest.mark.parametrize(
    ("mistake", "cause", "advice"),
    [
        (sum, "an expression is one value of each row", "agg(total=sum_(col('a')))"),
        (list, "an expression is one value of each row", "collect()"),
        (len, "an expression has no length", "count()"),
        (lambda a: 1 in a, "in does not work on an expression", "is_in([1, 2])"),
        (lambda a: a[0], "an expression cannot be indexed", "filter()"),
        (lambda a: a[-1], "an expression cannot be indexed", "col('a').list.get(-1) of a list"),
        (lambda a: a[1:4], "an expression cannot be indexed", "col('a').str.slice(1, 4) is a part of a text"),
        (lambda a: a[2:], "an expression cannot be indexed", "col('a').list.slice(2) of a list"),
        (lambda a: a["x"], "an expression cannot be indexed", "col('a').field('x') is a field of a struct"),
        (lambda a: max(a, a + 1), "an expression is neither true nor false", "when(...).then(...)"),
        (lambda a: a > 1 and a < 3, "an expression is neither true nor false", "use & for and"),
        (lambda a: a in [1, 2], "an expression is neither true nor false", "is_in([...])"),
    ],
)
def test_an_expression_says_what_to_write_instead(mistake, cause, advice):
    with pytest.raises(SchemaError) as error:
        mistake(col("a"))
    assert str(error.value).startswith(cause)
    assert advice in str(error.value)


def test_the_sum_of_several_columns_is_an_expression(rows):
    assert rows.select(sum([col("a"), col("a")]).alias("twice")).schema.names == ["twice"]


@pytest.mark.parametrize(
    ("mistake", "cause", "advice"),
    [
        (len, "a data set has no length", "count()"),
        (list, "a data set cannot be iterated", "collect()"),
        (bool, "a data set is neither true nor false", "count()"),
        (lambda d: "a" in d, "in does not work on a data set", "columns"),
        (lambda d: d[0:5], "data_set[slice(0, 5, None)]: rows have no numbers", "limit(n)"),
        (lambda d: d[d["a"] > 1], "data_set[<Expr a > 1>]", "filter(...)"),
        (lambda d: d.__setitem__("c", 1), "a data set is never changed", "with_columns(c=...)"),
        (lambda d: d["c"], "no column 'c'", "a, b"),
        (
            lambda d: d.filter(col("a") is None),
            "filter(False): expected an expression, but this is False before",
            "is_null()",
        ),
        (
            lambda d: d.filter(col("a") is not None),
            "filter(True): expected an expression, but this is True before",
            "is_not_null()",
        ),
    ],
)
def test_a_data_set_says_what_to_write_instead(rows, mistake, cause, advice):
    with pytest.raises(SchemaError) as error:
        mistake(rows)
    assert str(error.value).startswith(cause)
    assert advice in str(error.value)


def test_a_column_by_its_name_is_an_expression_and_a_list_of_names_a_data_set(rows):
    assert rows.filter(rows["a"] > 0).columns == ["a", "b"]
    assert rows[["b"]].columns == ["b"]


@pytest.mark.parametrize(
    "mistake",
    [
        lambda a: (a > 1) & (a is None),
        lambda a: (a is not None) & (a > 1),
        lambda a: (a > 1) | (a is None),
        lambda a: (a is not None) | (a > 1),
        lambda a: when(a is None).then(1),
    ],
)
def test_a_bool_beside_an_expression_is_told_to_be_one(mistake):
    with pytest.warns(DreyWarning, match=r"before any row is read.*is_null\(\)") as told:
        mistake(col("a"))
    assert len(told) == 1
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    ("compare", "advice"),
    [(lambda a: a == None, "is_null()"), (lambda a: a != None, "is_not_null()")],  # noqa: E711
)
def test_a_comparison_with_none_is_told_to_keep_no_row(rows, compare, advice):
    with pytest.warns(DreyWarning) as told:
        kept = rows.filter(compare(col("a")))
    assert [each.filename for each in told] == [__file__]
    assert str(told[0].message).endswith(f"write {advice}")
    assert kept.columns == ["a", "b"]


def test_the_category_of_warnings_is_public():
    assert engine.DreyWarning is DreyWarning


def test_only_files_of_the_engine_are_known_callers():
    assert (col("a") + 1).alias("b").expression is not None
    place = near_place()
    assert place is not None
    assert place.file == __file__, "here, and not one that was found before"
    assert user_warnings._known_files, "callers of the expression"
    assert all("/engine/" in file and "/examples/" not in file for file in user_warnings._known_files)
