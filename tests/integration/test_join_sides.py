"""Columns of a join written ``data["x"]``: each is one of its data set, and a comparison is no key."""

import gc

import pyarrow as pa
import pytest

from engine import col, count
from engine.api import column_sides
from engine.errors import SchemaError
from tests.integration.row_oracle import assert_same_rows, duck, rows_of

LEFT = pa.table({"id": [1, 2, 3, 3], "v": [1, 20, 30, None]})
RIGHT = pa.table({"id": [2, 3, 4], "v": [15, 35, 5], "w": [20, 30, 40]})


@pytest.fixture(scope="module", params=[1, 2])
def env(request, open_environment):
    return open_environment(**{"parallelism.default": request.param})


@pytest.fixture
def sides(env):
    return env.from_arrow(LEFT), env.from_arrow(RIGHT)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (lambda a, b: a["id"] == b["id"], "l.id = r.id"),
        (lambda a, b: b["id"] == a["id"], "l.id = r.id"),
        (lambda a, b: a["v"] < b["v"], "l.v < r.v"),
        (lambda a, b: b["v"] < a["v"], "r.v < l.v"),
        (lambda a, b: (a["id"] == b["id"]) & (a["v"] + 1 < b["v"] * 2), "l.id = r.id AND l.v + 1 < r.v * 2"),
        (lambda a, b: (a["v"] == b["w"]) | b["v"].is_in(5), "l.v = r.w OR r.v = 5"),
        (lambda a, b: col("id") == col("id_r"), "l.id = r.id"),
        (lambda a, b: a["id"] == col("id_r"), "l.id = r.id"),
    ],
)
@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_condition_reads_the_side_that_it_names(sides, condition, text, how):
    left, right = sides
    found = left.join(right, condition=condition(left, right), how=how, suffix="_r")
    query = f"SELECT l.id, l.v, r.id AS id_r, r.v AS v_r, r.w FROM l {how} JOIN r ON {text}"
    assert_same_rows(rows_of(found.to_arrow()), duck(query, l=LEFT, r=RIGHT))


def test_a_condition_behind_keys_and_checks_reads_its_sides(sides):
    left, right = sides
    found = left.join(right, on="id", condition=left["v"] < right["v"], suffix="_r", validate="m:1")
    assert found.sort("id").to_dicts() == [{"id": 3, "v": 30, "v_r": 35, "w": 30}]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (lambda a, b: a["id"] == b["id"], r"write on='id'"),
        (lambda a, b: [a["id"] == b["id"]], r"write on='id'"),
        (lambda a, b: a["v"] == b["w"], r"write left_on='v', right_on='w'"),
        (lambda a, b: b["w"] == a["v"], r"write left_on='v', right_on='w'"),
        (
            lambda a, b: (a["id"] == b["id"]) & (a["v"] == b["w"]),
            r"write left_on=\['id', 'v'\], right_on=\['id', 'w'\]",
        ),
        (lambda a, b: a["v"] < b["v"], r"write condition=\.\.\., with suffix='_right'"),
    ],
)
def test_a_comparison_is_no_key(sides, keys, text):
    left, right = sides
    for more in ((), ("left",)):
        with pytest.raises(SchemaError, match=text):
            left.join(right, keys(left, right), *more, suffix="_r")


def test_a_side_that_is_not_said_is_asked_for(sides):
    left, right = sides
    with pytest.raises(SchemaError, match=r"itself; write col\('v'\) for the left's, col\('v_r'\) for the right's"):
        left.join(right, condition=col("v") == col("v"), suffix="_r")
    with pytest.raises(SchemaError, match="a data set that is both sides"):
        left.join(left, condition=left["v"] < left["v"], suffix="_r")
    with pytest.raises(SchemaError, match="a data set that is neither side"):
        left.filter(col("v") > 1).join(right, condition=left["v"] < right["v"], suffix="_r")
    with pytest.raises(SchemaError, match="'v' is written as a column of the other data set"):
        left.join(right, left_on=right["v"], right_on=left["v"], suffix="_r")


def test_columns_are_forgotten_when_they_are_gone(sides):
    left, _ = sides
    gc.collect()
    before = len(column_sides._NODES)
    column = left["v"]
    assert len(column_sides._NODES) == before + 1
    del column
    gc.collect()
    assert len(column_sides._NODES) == before


OTHERS = {
    "filter": lambda a, column: a.filter(column > 1),
    "select": lambda a, column: a.select(column),
    "a value": lambda a, column: a.select(y=column + a["v"]),
    "with_columns": lambda a, column: a.with_columns(column.alias("y")),
    "sort": lambda a, column: a.sort(column),
    "group_by": lambda a, column: a.group_by(column).agg(n=count()),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_column_of_another_data_set_is_no_column_of_these_rows(sides, what):
    left, right = sides
    with pytest.raises(SchemaError, match="'v' is written as a column of another data set"):
        OTHERS[what](left, right["v"])
    OTHERS[what](left.filter(col("v") > 0).with_columns(z=1), left["v"])


def test_behind_a_join_a_column_of_the_right_has_its_own_name(sides):
    left, right = sides
    pairs = left.join(right, on="id", suffix="_r")
    assert pairs.select(left["v"], right["w"], right["id"]).count() == 3
    with pytest.raises(SchemaError, match=r"write col\(...\) with the name that the column has here: id, v, v_r, w"):
        pairs.select(right["v"])
