"""The same program embedded and on Spark gives the same rows: operators, types, functions, sources, sinks, errors."""

import signal
import time
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import (
    avg,
    col,
    collect_list,
    count,
    first,
    first_value,
    lag,
    last,
    lit,
    max_,
    median,
    min_,
    rand,
    row_number,
    row_place,
    string_agg,
    struct,
    sum_,
)
from engine.errors import DataError, EngineError, JobExecutionError, PlanError
from engine.spark.session_settings import with_settings
from tests.dataframes.same_rows import assert_same

pytestmark = pytest.mark.spark

NAN = float("nan")
START = datetime(2024, 1, 1, tzinfo=UTC)
EVENTS = pa.table(
    {
        "id": pa.array(range(600), pa.int64()),
        "g": pa.array([None if i % 13 == 0 else i % 7 for i in range(600)], pa.int32()),
        "x": pa.array([[0.0, -0.0, NAN, None, 1.5, -2.25][i % 6] for i in range(600)], pa.float64()),
        "s": pa.array([None if i % 11 == 0 else f"k{i % 9}" for i in range(600)], pa.string()),
        "u": pa.array([i % 5 for i in range(600)], pa.uint64()),
        "at": pa.array([START + timedelta(hours=i * 7 % 1000) for i in range(600)], pa.timestamp("ns", "UTC")),
        "l": pa.array([None if i % 17 == 0 else list(range(i % 4)) for i in range(600)], pa.list_(pa.int64())),
        "d": pa.array([date(2024, 1, 1) + timedelta(days=i % 90) for i in range(600)], pa.date32()),
    }
)
GROUPS = pa.table({"g": pa.array([0, 1, 2, 2, None, 9], pa.int32()), "name": ["a", "b", "c", "cc", "none", "nine"]})
NUMBERS_AND_TEXTS = pa.schema([("id", pa.int64()), ("s", pa.string())])
NUMBERS = pa.schema([("g", pa.int32()), ("n", pa.int64())])


def double(row):
    return row.id * 2, row.s


def words(row):
    return [(row.id, each) for each in (row.s or "").split("k")]


def of_group(rows):
    rows = list(rows)
    yield rows[0].g, len(rows)


def of_groups(left, right):
    left, right = list(left), list(right)
    yield (left or right)[0].g, len(left) * 100 + len(right)


def doubled(batch):
    return batch.set_column(0, "id", pa.array([2 * each for each in batch.column(0).to_pylist()], pa.int64()))


PROGRAMS = {
    "select": lambda e, g: e.select("id", (col("id") * 3).alias("t"), col("s").str.upper().alias("up")),
    "filter": lambda e, g: e.filter((col("g") > 2) & col("x").is_not_null()),
    "filter by what spark has not": lambda e, g: e.filter(col("s").str.matches("k[1-3]")).select("id", "s"),
    "inner": lambda e, g: e.join(g, on="g"),
    "left": lambda e, g: e.join(g, on="g", how="left"),
    "right": lambda e, g: e.join(g, on="g", how="right"),
    "full": lambda e, g: e.join(g, on="g", how="full"),
    "semi": lambda e, g: e.join(g, on="g", how="semi"),
    "anti": lambda e, g: e.join(g, on="g", how="anti"),
    "null-safe": lambda e, g: e.join(g, on="g", null_safe=True),
    "keys of both": lambda e, g: e.join(g.rename({"g": "h"}), left_on="g", right_on="h", how="full"),
    "floats as keys": lambda e, g: e.select("x").distinct().join(e.group_by("x").agg(n=count()), on="x"),
    "condition": lambda e, g: e.join(g, on="g", how="left", condition=col("name") < col("s")),
    "condition of the engine": lambda e, g: e.join(
        g, on="g", how="left", condition=col("name").str.upper() < col("s").str.upper()
    ),
    "not in": lambda e, g: e.filter(~col("id").is_in(g.drop_nulls("g").select(col("g").cast(pa.int64())))),
    "not in with nulls": lambda e, g: e.filter(~col("g").is_in(g.select("g"))),
    "cross": lambda e, g: e.select("id").limit(20).join(g, how="cross").select("name").distinct(),
    "groups": lambda e, g: e.group_by("g", "s").agg(
        n=count(), m=count("x"), total=sum_("id"), low=min_("at"), high=max_("u"), mean=avg("id"), most=max_("x")
    ),
    "groups of floats": lambda e, g: e.group_by("x").agg(n=count()),
    "all rows": lambda e, g: e.agg(n=count(), total=sum_("id"), mean=avg("id"), half=median("id")),
    "all of no rows": lambda e, g: e.filter(col("id") < 0).agg(n=count(), total=sum_("id"), half=median("id")),
    "lists": lambda e, g: e.group_by("g").agg(
        ids=collect_list("id", order_by="id"), text=string_agg("s", ",", order_by="id"), half=median("id")
    ),
    "distinct": lambda e, g: e.select("g", "s").distinct(),
    "rollup": lambda e, g: e.group_by("g", "s").rollup().agg(n=count()),
    "windows": lambda e, g: e.with_columns(
        place=row_number().over(partition_by="g", order_by="id"),
        before=lag("id").over(partition_by="g", order_by="id"),
        running=sum_("id").over(partition_by="g", order_by="id"),
    ),
    "window over all": lambda e, g: e.with_columns(place=row_number().over(order_by="id")),
    "first of each": lambda e, g: e.filter(row_number().over(partition_by="g", order_by="id") <= 2),
    "as of": lambda e, g: e.asof_join(
        e.select("g", "at", col("id").alias("other")), on="at", by="g", tolerance=timedelta(hours=5)
    ),
    "union": lambda e, g: e.select("g").union(g.select("g")),
    "intersect": lambda e, g: e.select("g").intersect(g.select("g")),
    "except": lambda e, g: g.select("g").except_(e.select("g")),
    "explode": lambda e, g: e.select("id", "l").explode("l", position="p"),
    "struct": lambda e, g: e.select("id", struct(a=col("g"), b=col("s")).alias("both")),
    "map": lambda e, g: e.map(double, pa.schema([("id", pa.int64()), ("s", pa.string())])),
    "flat_map": lambda e, g: e.flat_map(words, pa.schema([("id", pa.int64()), ("w", pa.string())])),
    "filter by a function": lambda e, g: e.filter(lambda row: row.id % 3 == 0),
    "map_batches": lambda e, g: e.select("id", "s").map_batches(
        doubled, pa.schema([("id", pa.int64()), ("s", pa.string())])
    ),
    "reduce": lambda e, g: e.group_by("g").reduce(of_group, NUMBERS),
    "co_group": lambda e, g: e.co_group(g, on="g", fn=of_groups, schema=NUMBERS),
    "spread": lambda e, g: e.rebalance().key_by("g").partition_by_range("id").global_(),
}
SORTED = {
    "ascending": lambda e: e.sort(["x", "id"]),
    "descending": lambda e: e.sort(["x", "id"], descending=[True, False], nulls_last=True),
    "top": lambda e: e.top(7, ["s", "id"]),
    "behind a sort": lambda e: e.sort("id", descending=True).select(
        (col("id") + 1).alias("i"), col("s").str.upper().alias("u")
    ),
}


def _both(places, program):
    for env in places:
        yield program(env.from_arrow(EVENTS), env.from_arrow(GROUPS)).to_arrow()


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_are_the_same(places, name):
    local, on_spark = _both(places, PROGRAMS[name])
    assert_same(local, on_spark)


@pytest.mark.parametrize("name", SORTED)
def test_order_is_the_same(places, name):
    local, on_spark = _both(places, lambda events, _: SORTED[name](events))
    assert_same(local, on_spark, in_order=True)


@pytest.mark.parametrize("kind", ["csv", "parquet", "records", "json", "text"])
def test_files_are_read_and_written_alike(places, tmp_path, kind):
    source = tmp_path / "events.parquet"
    pq.write_table(EVENTS.select(["id", "g", "s", "d"]), source, row_group_size=100)
    for env, name in zip(places, ("local", "spark"), strict=True):
        data = env.read_parquet(source)
        if kind == "text":
            data = data.select(col("id").cast(pa.string()).alias("line"))
        getattr(data, f"write_{kind}")(tmp_path / name)
        env.execute()
        names = sorted(path.name for path in (tmp_path / name).iterdir())
        assert all(each.startswith("part-") or each == "manifest.json" or "manifest" in each for each in names), names
    read = {"schema": pa.schema([("id", pa.int64()), ("g", pa.int32()), ("s", pa.string()), ("d", pa.date32())])}
    options = read if kind in ("csv", "json") else {}
    rows = [getattr(places[0], f"read_{kind}")(tmp_path / name, **options).to_arrow() for name in ("local", "spark")]
    assert_same(*rows)
    there = getattr(places[1], f"read_{kind}")(tmp_path / "spark", **options).to_arrow()
    assert_same(rows[0], there)


@pytest.mark.parametrize(
    "name", ["_a.parquet", ".a", "a._COPYING_", "st*r/a", "b[1]/a", "{p,q}/a", "ba\\ck/a", "k=1/a"]
)
def test_a_file_is_read_whatever_its_name(places, tmp_path, name):
    for number, each in enumerate([name, "star/a", "b1/a", "p/a"]):
        (tmp_path / each).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"n": [number]}), tmp_path / each)
    for env in places:
        assert env.read_parquet(tmp_path / name).to_arrow().to_pydict() == {"n": [0]}


def test_a_damaged_file_is_an_error_whatever_the_session_ignores(places, spark, tmp_path):
    for number in range(2):
        pq.write_table(pa.table({"n": range(1000)}), tmp_path / f"{number}.parquet")
    data = bytearray((tmp_path / "1.parquet").read_bytes())
    data[4:400] = bytes(396)
    (tmp_path / "1.parquet").write_bytes(data)
    with with_settings(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}):
        for env in places:
            with pytest.raises(EngineError, match=r"1\.parquet"):
                env.read_parquet(tmp_path).to_arrow()


def test_rows_are_the_same_whatever_a_session_leaves_out_or_refuses(places, spark):
    settings = {
        "spark.sql.retainGroupColumns": "false",
        "spark.sql.crossJoin.enabled": "false",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "America/New_York",
    }
    results = []
    with with_settings(spark, settings):
        for env in places:
            rows = env.from_arrow(EVENTS)
            groups = rows.group_by("g").agg(n=count())
            largest = groups.group_by().agg(most=max_("n"))
            results.append(groups.join(largest, how="cross").filter(col("n") < col("most")).to_arrow())
        left = {key: spark.conf.get(key) for key in settings}
        assert left == settings
    assert results[0].num_rows
    assert_same(*results)


def test_partitioned_output(places, tmp_path):
    for env, name in zip(places, ("local", "spark"), strict=True):
        env.from_arrow(EVENTS.select(["id", "g", "s"])).write_parquet(tmp_path / name, partition_by="g")
        env.execute()
    local, on_spark = (places[0].read_parquet(tmp_path / name).to_arrow() for name in ("local", "spark"))
    assert_same(local, on_spark)
    folders = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("local", "spark")]
    assert folders[0] == folders[1]


def test_a_job_that_fails_says_why_and_writes_nothing(places, tmp_path):
    def broken(row):
        return (1 // (row.id - 300),)

    messages = []
    for env, name in zip(places, ("local", "spark"), strict=True):
        env.from_arrow(EVENTS).map(broken, pa.schema([("n", pa.int64())])).write_parquet(tmp_path / name)
        with pytest.raises(JobExecutionError) as caught:
            env.execute()
        messages.append(str(caught.value).splitlines()[0])
        assert list(tmp_path.iterdir()) == []
        assert caught.value.__cause__ is None
    assert "ZeroDivisionError" in messages[1]
    assert messages[0] == messages[1]


def slow(row):
    time.sleep(120)
    return row.id, row.s


def test_what_a_signal_handler_raises_ends_the_wait(places):
    """A time-out around a job, as ``signal.alarm`` makes one."""

    def handler(_number, _frame):
        raise ValueError("enough")

    former = signal.signal(signal.SIGALRM, handler)
    try:
        for env in places:
            signal.setitimer(signal.ITIMER_REAL, 5)
            with pytest.raises(ValueError, match="enough"):
                env.from_arrow(EVENTS).map(slow, NUMBERS_AND_TEXTS).to_arrow()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def test_sums_that_overflow_fail(places):
    rows = pa.table({"g": [1, 1], "v": pa.array([2**62, 2**62], pa.int64())})
    for env in places:
        with pytest.raises(JobExecutionError, match=r"(?i)overflow"):
            env.from_arrow(rows).group_by("g").agg(t=sum_("v")).collect()
        with pytest.raises(JobExecutionError, match=r"(?i)overflow"):
            env.from_arrow(rows).select((col("v") * 4).alias("w")).collect()


def test_what_nobody_reads_is_not_computed(places):
    """Neither by Spark nor by a fragment; a column that fails ends the job where it is read, and there alone."""
    for env in places:
        rows = env.from_arrow(EVENTS).with_columns(bad=col("s").cast(pa.int32()), ok=col("s").str.matches("k[1-3]"))
        groups = env.from_arrow(GROUPS).with_columns(worse=col("name").cast(pa.int32()))
        found = rows.join(groups, on="g", how="full").group_by("ok").agg(n=count()).to_arrow()
        assert dict(zip(*found.to_pydict().values(), strict=True)) == {True: 208, False: 410, None: 64}
        with pytest.raises((DataError, JobExecutionError), match="k"):
            rows.group_by("bad").agg(n=count()).to_arrow()


def test_an_output_that_exists_is_refused(places, tmp_path):
    (tmp_path / "out").mkdir()
    places[1].from_arrow(GROUPS).write_csv(tmp_path / "out")
    with pytest.raises(PlanError, match="already exists"):
        places[1].execute()
    places[1].from_arrow(GROUPS).write_csv(tmp_path / "out", overwrite=True)
    result = places[1].execute()
    assert result.state == "FINISHED"
    assert len((tmp_path / "out" / "part-00000.csv").read_text().splitlines()) <= GROUPS.num_rows


def test_malformed_rows_fail_with_file_and_line(places, tmp_path):
    (tmp_path / "a.csv").write_text("1,2\nx,3\n")
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    for env in places:
        with pytest.raises(DataError, match=r"a\.csv.*line 2"):
            env.read_csv(tmp_path / "a.csv", schema=schema).collect()


def test_broadcast_data_sets_travel_with_their_function(places):
    class Named:
        def open(self, context):
            self.names = {row.g: row.name for row in context.broadcast("names")}

        def __call__(self, row):
            return row.id, self.names.get(row.g)

    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    rows = [
        env.from_arrow(EVENTS).map(Named(), schema).with_broadcast(names=env.from_arrow(GROUPS)).to_arrow()
        for env in places
    ]
    assert_same(*rows)


def test_sql_runs_on_spark(places):
    rows = []
    for env in places:
        env.register("events", env.from_arrow(EVENTS))
        env.register("groups", env.from_arrow(GROUPS))
        rows.append(
            env.sql(
                "SELECT name, count(*) AS n, sum(id) AS t FROM events JOIN groups USING (g) "
                "WHERE s LIKE 'k%' GROUP BY name HAVING count(*) > 1 ORDER BY name"
            ).to_arrow()
        )
    assert_same(*rows, in_order=True)


def test_rows_come_as_a_stream(places):
    with places[1].from_arrow(EVENTS).select("id", lit(1).alias("one")).to_batches() as batches:
        assert sum(batch.num_rows for batch in batches) == EVENTS.num_rows


def test_cached_rows_are_computed_once(places):
    cached = places[1].from_arrow(EVENTS).filter(col("id") < 50).cache()
    assert cached.count() == 50
    assert cached.select("id").to_arrow().num_rows == 50


def test_rows_have_the_order_of_their_files_and_numbers_of_their_own(places, tmp_path):
    """Spark takes the largest file first, left to itself; and each of its tasks begins with the first place."""
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"id": range(1000, 3000)}), tmp_path / "1.parquet")
    _, on_spark = places
    rows = on_spark.read_parquet(str(tmp_path))
    found = rows.select("id", row_place().alias("place"), rand(3).alias("r")).to_arrow()
    assert found.column("id").to_pylist() == list(range(3000))
    assert len(set(found.column("place").to_pylist())) == 3000
    assert len(set(found.column("r").to_pylist())) == 3000
    assert rows.head(3).to_arrow().column("id").to_pylist() == [0, 1, 2]
    sampled = set(rows.sample(0.1, seed=7).to_arrow().column("id").to_pylist())
    below = {row for row in sampled if row < 1000}
    assert sum(row + 1000 in sampled for row in below) < len(below) // 2


def joined(rows):
    rows = list(rows)
    yield rows[0].g, "".join(row.s or "-" for row in rows)


IN_ORDER = {
    "first and last": lambda e: e.group_by("g").agg(a=first("s"), b=last("id"), c=first("x", filter=col("id") > 300)),
    "of all rows": lambda e: e.agg(a=first("s"), b=last("s"), n=count()),
    "lists": lambda e: e.group_by("g").agg(ids=collect_list("id"), text=string_agg("s", ",")),
    "functions of groups": lambda e: e.group_by("g").reduce(joined, pa.schema([("g", pa.int32()), ("t", pa.string())])),
    "windows": lambda e: e.select("id", n=row_number().over("g"), s=first_value("s").over("g", rows=(None, None))),
    "behind a filter and a function": lambda e: (
        e.filter(col("id") % 3 > 0).map(lambda row: (row.g, row.id), NUMBERS).group_by("g").agg(n=last("n"))
    ),
}


@pytest.mark.parametrize("name", IN_ORDER)
def test_what_follows_the_order_of_a_sort_does_so_on_spark(places, name):
    ordered = [place.from_arrow(EVENTS).sort(["d", "id"], descending=[True, False]) for place in places]
    local, on_spark = (IN_ORDER[name](data).to_arrow() for data in ordered)
    assert_same(local, on_spark)


def test_pages_of_ties_fit_together_on_spark(places):
    ordered = places[1].from_arrow(EVENTS).select("id", "u", "x").filter(col("id") < 100).rebalance().sort("u")
    pages = [ordered.limit(40, offset).to_arrow()["id"].to_pylist() for offset in (0, 40, 80)]
    assert sorted(id_ for page in pages for id_ in page) == list(range(100))
    assert ordered.limit(None, offset=40).to_arrow()["id"].to_pylist() == pages[1] + pages[2]
