"""Joins with heavy keys: the same rows as DuckDB, and no subtask with more than its share."""

import statistics

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine import JoinHint, col, count, lit, sum_
from engine.examples.generate_instruments import CURRENCIES, INSTRUMENTS, generate
from engine.examples.skew_join import skew_join
from tests.integration.row_oracle import assert_same_rows, duck
from tests.integration.test_skew_join import write_export

FIRST, SECOND = JoinHint.REPARTITION_HASH_FIRST, JoinHint.REPARTITION_HASH_SECOND
CONFIGURATIONS = {
    "two": {"parallelism.default": 2},
    "four in batch mode": {"parallelism.default": 4, "execution.mode": "BATCH"},
    "eight spilling": {"parallelism.default": 8, "debug.force-spill": True},
}
#: heavy keys of the left and of the right, as shares of the rows
SKEWS = {
    "left": ({7: 0.6}, {}),
    "right": ({}, {7: 0.6}),
    "both the same": ({7: 0.3}, {7: 0.1}),
    "each its own": ({7: 0.4, 8: 0.1}, {11: 0.5}),
    "without a match": ({-1: 0.4}, {-2: 0.3}),
}
HOW = ("inner", "left", "right", "full", "semi", "anti")


def keyed(rows, heavy, own, nulls=0.2):
    """Return ``rows`` keys in no order: heavy ones, nulls, and others of which some are the other side's."""
    keys = [key for key, share in heavy.items() for _ in range(int(rows * share))]
    keys += [None] * int(rows * nulls)
    keys += [position % 150 if position % 5 else own + position for position in range(rows - len(keys))]
    return [keys[position * 997 % rows] for position in range(rows)]


def tables(skew):
    left_heavy, right_heavy = SKEWS[skew]
    left, right = keyed(1200, left_heavy, 10_000), keyed(500, right_heavy, 20_000)
    return (
        pa.table({"k": pa.array(left, pa.int64()), "l": range(len(left))}),
        pa.table({"rk": pa.array(right, pa.int64()), "r": range(len(right))}),
    )


def joined_by_duck(left, right, how, condition="a.k = b.rk"):
    columns = "a.*" if how in ("semi", "anti") else "a.*, b.*"
    join = {"full": "full outer"}.get(how, how)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("a_table", left)
        connection.register("b_table", right)
        return connection.sql(f"SELECT {columns} FROM a_table a {join} JOIN b_table b ON {condition}").to_arrow_table()


def assert_same_table(actual, expected):
    """Compare as multisets of rows, in DuckDB."""
    assert actual.column_names == expected.column_names
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("actual", actual)
        connection.register("expected", expected)
        for one, other in (("actual", "expected"), ("expected", "actual")):
            rows = connection.execute(f"SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other} LIMIT 5").fetchall()
            assert rows == [], f"only in {one}"


@pytest.mark.thorough
@pytest.mark.sample("pairs")
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("hint", [FIRST, SECOND])
def test_every_join_with_every_skew_gives_the_rows_of_duckdb(open_environment, hint, skew, how):
    # each configuration meets every type, skew and build side, not all of them at once
    turn = list(SKEWS).index(skew) + HOW.index(how) + (hint is SECOND)
    env = open_environment(**list(CONFIGURATIONS.values())[turn % 3])
    left, right = tables(skew)
    joined = env.from_arrow(left).join(env.from_arrow(right), left_on="k", right_on="rk", how=how, hint=hint)
    if not (how in ("semi", "anti") and skew == "both the same"):
        assert "heavy keys split" in joined.explain()
    assert_same_table(joined.to_arrow(), joined_by_duck(left, right, how))


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("remain", [0, 1])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("heavy", ["left", "right"])
def test_of_copies_without_heavy_rows_or_with_one_only_those_at_home_come_out(open_environment, heavy, how, remain):
    env = open_environment(**{"parallelism.default": 4})
    left, right = tables(heavy)

    def but_some(table, key, number):
        """Return all rows but those of the heavy key, of which the last ones remain; and the same of the engine."""
        is_heavy = pc.fill_null(pc.equal(table[key], 7), False)
        last = table.filter(is_heavy)[number].to_pylist()[-remain:] if remain else []
        keep = pc.or_(pc.invert(is_heavy), pc.is_in(table[number], pa.array(last, pa.int64())))
        is_kept = (col(key) + lit(0) != 7) | col(key).is_null()
        for row in last:
            is_kept = is_kept | (col(number) == row)
        return table.filter(keep), env.from_arrow(table).filter(is_kept)

    sides = env.from_arrow(left), env.from_arrow(right)
    if heavy == "left":
        left, kept = but_some(left, "k", "l")
        sides = kept, sides[1]
    else:
        right, kept = but_some(right, "rk", "r")
        sides = sides[0], kept
    joined = sides[0].join(sides[1], left_on="k", right_on="rk", how=how, hint=FIRST if remain else SECOND)
    assert "heavy keys split" in joined.explain()
    assert_same_table(joined.to_arrow(), joined_by_duck(left, right, how))


@pytest.mark.parametrize("how", HOW)
def test_a_coalesced_key_and_a_group_by_after_a_split_join_are_right(open_environment, how):
    env = open_environment(**{"parallelism.default": 4})
    left, right = tables("each its own")
    right = right.rename_columns(["k", "r"])
    joined = env.from_arrow(left).join(env.from_arrow(right), on="k", how=how, hint=SECOND)
    grouped = joined.group_by("k").agg(rows=count(), of_left=sum_(col("l")))
    assert "SINGLE" not in grouped.explain()
    sql = f"SELECT k, count(*), sum(l) FROM a {'full outer' if how == 'full' else how} JOIN b USING (k) GROUP BY k"
    assert_same_rows(map(tuple, (row.values() for row in grouped.to_arrow().to_pylist())), duck(sql, a=left, b=right))


@pytest.mark.quick
@pytest.mark.parametrize("how", HOW)
def test_joins_that_split_only_some_keys_are_right(open_environment, how):
    env = open_environment(**{"parallelism.default": 4})
    left, right = tables("each its own")
    sides = env.from_arrow(left), env.from_arrow(right)
    merged = sides[0].join(sides[1], left_on="k", right_on="rk", how=how, hint=JoinHint.REPARTITION_SORT_MERGE)
    assert_same_table(merged.to_arrow(), joined_by_duck(left, right, how))
    condition = col("l") % 7 < col("r") % 5
    chosen = sides[0].join(sides[1], left_on="k", right_on="rk", how=how, hint=FIRST, condition=condition)
    assert_same_table(chosen.to_arrow(), joined_by_duck(left, right, how, "a.k = b.rk AND a.l % 7 < b.r % 5"))
    for joined in (merged, chosen):
        assert ("heavy keys split" in joined.explain()) == (how != "full")


def test_groups_that_lie_right_already_are_copied_for_a_heavy_key(open_environment):
    env = open_environment(**{"parallelism.default": 4})
    left, _ = tables("left")
    groups = env.from_arrow(left).group_by("k").agg(n=count()).rename({"k": "gk"})
    joined = env.from_arrow(left).join(groups, left_on="k", right_on="gk", hint=SECOND)
    assert "heavy keys split" in joined.explain()
    sql = "SELECT a.*, b.* FROM a JOIN (SELECT k AS gk, count(*) FROM a GROUP BY k) b ON k = gk"
    assert_same_rows(map(tuple, (row.values() for row in joined.to_arrow().to_pylist())), duck(sql, a=left))


def test_a_second_join_by_the_split_key_is_right(open_environment):
    env = open_environment(**{"parallelism.default": 4})
    left, right = tables("left")
    third = pa.table({"tk": pa.array([7, 7, 8, None], pa.int64()), "t": [1, 2, 3, 4]})
    joined = env.from_arrow(left).join(env.from_arrow(right), left_on="k", right_on="rk", hint=SECOND)
    again = joined.join(env.from_arrow(third), left_on="rk", right_on="tk", hint=FIRST)
    expected = duck("SELECT a.*, b.*, c.* FROM a JOIN b ON k = rk JOIN c ON rk = tk", a=left, b=right, c=third)
    assert_same_rows(map(tuple, (row.values() for row in again.to_arrow().to_pylist())), expected)


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_heavy_keys_of_two_columns_are_split(open_environment, how):
    env = open_environment(**{"parallelism.default": 4})
    keys = keyed(1200, {7: 0.6}, 3)
    texts = ["x" if row % 3 else None if row % 2 else f"t{row % 50}" for row in range(len(keys))]
    left = pa.table({"k": pa.array(keys, pa.int32()), "m": texts, "l": range(len(keys))})
    right = pa.table({"k2": [7, 7, 7, 8, 9, None, 7], "m2": ["x", "x", "t9", "x", None, "x", None], "r": range(7)})
    joined = env.from_arrow(left).join(
        env.from_arrow(right), left_on=["k", "m"], right_on=["k2", "m2"], how=how, hint=SECOND
    )
    assert "heavy keys split: __k_as_int64=7 and m=x" in joined.explain()
    expected = joined_by_duck(left, right, how, "a.k = b.k2 AND a.m = b.m2")
    assert_same_table(joined.to_arrow(), expected.cast(pa.schema(joined.schema)))


_TYPES = {
    "int32 with int64": (pa.int32(), pa.int64(), int),
    "int8 with double": (pa.int8(), pa.float64(), int),
    "int64 with decimal": (pa.int64(), pa.decimal128(20, 2), int),
    "double": (pa.float64(), pa.float64(), lambda key: (0.0 if key % 2 else -0.0) if key == 7 else key / 4),
    "string": (pa.string(), pa.large_string(), "key {}".format),
    "binary": (pa.binary(), pa.binary(), "key {}".format),
    "date with timestamp": (pa.date32(), pa.timestamp("us"), None),
    "bool": (pa.bool_(), pa.bool_(), lambda key: key == 7),
}


@pytest.mark.parametrize("types", _TYPES)
def test_heavy_keys_of_every_type_are_found_again_after_widening(open_environment, types):
    env = open_environment(**{"parallelism.default": 4})
    left_type, right_type, make = _TYPES[types]

    def column(keys, data_type):
        numbers = pa.array([None if key is None else key % 120 for key in keys], pa.int32())
        if make is None:
            return numbers.cast(pa.date32()).cast(data_type)
        made = pa.array([None if key is None else make(key) for key in numbers.to_pylist()])
        return (made.cast(pa.int8()) if make is int else made).cast(data_type)

    left = pa.table({"k": column(keyed(1200, {7: 0.6}, 3), left_type), "l": range(1200)})
    right = pa.table({"rk": column(keyed(130, {}, 5, nulls=0.1), right_type), "r": range(130)})
    joined = env.from_arrow(left).join(env.from_arrow(right), left_on="k", right_on="rk", hint=SECOND).select("l", "r")
    assert "heavy keys split" in joined.explain()
    expected = joined_by_duck(left, right, "inner").select(["l", "r"])
    assert_same_table(joined.to_arrow(), expected)


# ------------------------------------------------------------------------------------------ the article's join, in rows


@pytest.fixture(scope="module")
def instruments(tmp_path_factory):
    """140 000 instruments in every format; 13 of 14 have one currency."""
    folder = tmp_path_factory.mktemp("instruments")
    for file_format in ("csv", "parquet"):
        generate(140_000, folder / file_format, 5, file_format)
    parts = sorted((folder / "parquet" / "instruments").iterdir())
    write_export(folder / "records" / "instruments", pa.concat_tables(map(pq.read_table, parts)), 4)
    write_export(folder / "records" / "currencies", pq.read_table(folder / "parquet" / "currencies.parquet"), 1)
    return folder


def read(env, folder, file_format):
    if file_format == "records":
        return env.read_records(folder / "records" / "instruments"), env.read_records(folder / "records" / "currencies")
    if file_format == "parquet":
        folder = folder / "parquet"
        return env.read_parquet(folder / "instruments"), env.read_parquet(folder / "currencies.parquet")
    folder = folder / "csv"
    return (
        env.read_csv(folder / "instruments", schema=INSTRUMENTS),
        env.read_csv(folder / "currencies.csv", schema=CURRENCIES),
    )


def rows_of_join(result, what):
    (join,) = [vertex for vertex in result.to_json_dict()["vertices"] if "join" in vertex["name"]]
    return [subtask[what] for subtask in join["subtasks"]]


@pytest.mark.parametrize("parallelism", [2, 4, 8])
@pytest.mark.parametrize("file_format", ["csv", "parquet", "records"])
def test_a_forced_repartitioning_gives_every_subtask_its_share(
    open_environment, instruments, tmp_path, file_format, parallelism
):
    env = open_environment(**{"parallelism.default": parallelism})
    hint = FIRST if parallelism == 4 else SECOND
    joined = skew_join(*read(env, instruments, file_format), hint)
    assert f"source: {'manifest' if file_format == 'records' else 'sample'}" in joined.explain()
    joined.write_parquet(str(tmp_path / "out"))
    result = env.execute()
    (split,) = result.splits
    assert split.startswith("inner join on CurrencyID: heavy keys split: CurrencyID=1 (9")
    assert f"decided: {split}" in result.report
    for what in ("rows_in", "rows_out"):
        rows = rows_of_join(result, what)
        assert len(rows) == parallelism
        assert max(rows) / statistics.median(rows) <= 1.3, (what, rows)
    assert sum(rows_of_join(result, "rows_out")) == 140_000


def test_the_heavy_side_may_be_built(open_environment, instruments, tmp_path):
    env = open_environment(**{"parallelism.default": 4})
    instrument, currency = read(env, instruments, "parquet")
    joined = currency.join(instrument.select("CurrencyID", "RIC"), on="CurrencyID", hint=SECOND)
    joined.write_parquet(str(tmp_path / "out"))
    rows = rows_of_join(env.execute(), "rows_in")
    assert max(rows) / statistics.median(rows) <= 1.3, rows


def test_legacy_estimates_send_the_heavy_key_to_one_subtask(open_environment, instruments, tmp_path):
    env = open_environment(**{"parallelism.default": 4, "optimizer.legacy-estimates": True})
    skew_join(*read(env, instruments, "csv"), SECOND).write_parquet(str(tmp_path / "out"))
    rows = rows_of_join(env.execute(), "rows_in")
    assert max(rows) > 130_000, rows
