"""Joins by keys that nobody knows before they run: split when the stored inputs show that they are skewed."""

import statistics

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import JoinHint, col, count
from tests.integration.test_skew import assert_same_table, joined_by_duck

SETTINGS = {
    "execution.mode": "BATCH",
    "execution.batch.adaptive.auto-parallelism.enabled": False,
    "execution.batch.adaptive.skewed-join.skewed-threshold": "16kb",
    "taskmanager.memory.segment-size": "4kb",
}
HASHED = JoinHint.REPARTITION_HASH_SECOND
HOW = ("inner", "left", "right", "full", "semi", "anti")
#: inputs that may be cut
CUT = {
    "inner": {"left", "right"},
    "left": {"left"},
    "right": {"right"},
    "full": set(),
    "semi": {"left"},
    "anti": {"left"},
}
ROWS = 14_000


def hidden_key(batch):
    """Give 13 of 14 rows one key: that of no other row, of few others, or null for some."""
    import pyarrow as pa

    numbers = batch.column(0).to_pylist()
    keys = [None if n % 196 == 0 else n * 7919 % 700 if n % 14 == 0 else 5 for n in numbers]
    return pa.record_batch([pa.array(keys, pa.int64()), *batch.columns], names=["k", *batch.schema.names])


HEAVY = pa.table({"l": range(ROWS), "text": ["x" * (n % 50) for n in range(ROWS)]})
KEYED = pa.table(hidden_key(HEAVY.combine_chunks().to_batches()[0]).columns, names=["k", "l", "text"])
# two rows of the heavy key; keys without a match
LIGHT = pa.table({"rk": [5, *range(300), *range(2000, 2100), None], "r": range(402)})


@pytest.fixture(scope="module")
def heavy_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("skewed") / "heavy.parquet"
    pq.write_table(HEAVY, path, row_group_size=500)
    return str(path)


def loads(result, name=" join ", what="rows_in"):
    vertex = next(each for each in result.vertices if name in each.name)
    return [getattr(subtask, what) for subtask in vertex.subtasks]


def run(environment, joined, folder):
    """Run a job to a folder; return its result and its rows."""
    joined.write_parquet(str(folder))
    result = environment.execute("skewed")
    return result, pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("*.parquet")))


def skew_texts(result):
    return [decision.text for decision in result.decisions if decision.kind == "SKEWED_JOIN"]


def join_of(env, heavy_file, how, heavy):
    """Return the join with the heavy key on one side, and the same of DuckDB."""
    sides = [env.read_parquet(heavy_file).map_batches(hidden_key, KEYED.schema), env.from_arrow(LIGHT)]
    keys, tables = ["k", "rk"], [KEYED, LIGHT]
    if heavy == "right":
        sides, keys, tables = sides[::-1], keys[::-1], tables[::-1]
    condition, text = None, f"a.{keys[0]} = b.{keys[1]}"
    if how == "left":
        condition, text = col("l") % 7 < col("r") % 5, f"{text} AND l % 7 < r % 5"
    joined = sides[0].join(sides[1], left_on=keys[0], right_on=keys[1], how=how, hint=HASHED, condition=condition)
    return joined, joined_by_duck(*tables, how, text)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("heavy", ["left", "right"])
def test_a_key_of_a_function_is_split_where_that_is_right(open_environment, heavy_file, tmp_path, how, heavy):
    spilling = {"parallelism.default": 3, "debug.force-spill": True}
    env = open_environment(**SETTINGS, **(spilling if heavy == "right" else {"parallelism.default": 4}))
    joined, expected = join_of(env, heavy_file, how, heavy)
    result, actual = run(env, joined, tmp_path / "out")
    assert_same_table(actual, expected)
    (text,) = skew_texts(result)
    rows = loads(result)
    if heavy in CUT[how]:
        assert f"{heavy} of subtask" in text and f"spread over {len(rows)} subtasks" in text
        assert max(rows) / statistics.median(rows) <= 1.3, rows
    else:
        assert f"{heavy} stays skewed" in text and "has a match" in text
        assert sum(rows) == ROWS + LIGHT.num_rows


@pytest.mark.parametrize("parallelism", [2, 8])
def test_few_subtasks_and_many_share_alike(open_environment, heavy_file, tmp_path, parallelism):
    env = open_environment(**SETTINGS, **{"parallelism.default": parallelism})
    joined, expected = join_of(env, heavy_file, "anti", "left")
    result, actual = run(env, joined, tmp_path / "out")
    assert_same_table(actual, expected)
    rows = loads(result)
    assert max(rows) / statistics.median(rows) <= 1.3, rows


def test_a_key_of_another_join_is_split_and_rows_larger_than_a_page_stay_whole(open_environment, tmp_path):
    env = open_environment(**SETTINGS, **{"parallelism.default": 4})
    large = pa.table({"a": range(3000), "text": ["t" * (9000 if n % 100 == 0 else 80) for n in range(3000)]})
    codes = pa.table({"b": range(3000), "code": [3 if n % 14 else n for n in range(3000)]})
    names = pa.table({"c": range(3000), "name": [str(n) for n in range(3000)]})
    first = env.from_arrow(large).join(env.from_arrow(codes), left_on="a", right_on="b", hint=HASHED)
    joined = first.join(env.from_arrow(names), left_on="code", right_on="c", how="left", hint=HASHED)
    result, actual = run(env, joined, tmp_path / "out")
    tables = {"large": large, "codes": codes, "names": names}
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        sql = "SELECT * FROM large JOIN codes ON a = b LEFT JOIN names ON code = c"
        assert_same_table(actual, connection.sql(sql).to_arrow_table())
    assert ["left of subtask" in text for text in skew_texts(result)] == [True]
    read = loads(result, "left join", "bytes_in")
    assert max(read) / statistics.median(read) <= 1.3, read


def test_a_group_by_the_same_key_keeps_the_join_as_it_is(open_environment, heavy_file, tmp_path):
    env = open_environment(**SETTINGS, **{"parallelism.default": 4})
    joined, _ = join_of(env, heavy_file, "inner", "left")
    result, actual = run(env, joined.group_by("k").agg(n=count()), tmp_path / "out")
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("heavy", KEYED)
        connection.register("light", LIGHT)
        sql = "SELECT k, count(*) AS n FROM heavy JOIN light ON k = rk GROUP BY k"
        assert_same_table(actual, connection.sql(sql).to_arrow_table())
    assert [("stays skewed" in text, "relies on" in text) for text in skew_texts(result)] == [(True, True)]


def test_an_option_turns_it_off(open_environment, heavy_file, tmp_path):
    off = {"execution.batch.adaptive.skewed-join.enabled": False, "parallelism.default": 4}
    env = open_environment(**SETTINGS, **off)
    joined, expected = join_of(env, heavy_file, "semi", "left")
    result, actual = run(env, joined, tmp_path / "out")
    assert_same_table(actual, expected)
    assert result.decisions == () and max(loads(result)) > 0.9 * sum(loads(result))
