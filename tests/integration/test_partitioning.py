"""Where rows go when the user says so: each call against what it promises, seen from the subtasks."""

from collections import Counter, defaultdict
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import DataError, JobExecutionError, JoinHint, PlanError, SchemaError, col, count
from engine.exchange.output_flusher import OutputFlusher
from engine.exchange.record_writer_builder import RecordWriterBuilder
from tests.integration.row_oracle import assert_same_rows, rows_of

ROWS = 1_000
SCHEMA = pa.schema([("a", pa.int64()), ("k", pa.string())])
TAGGED = pa.schema([*SCHEMA, ("part", pa.int64())])


@pytest.fixture(scope="module")
def rows():
    return pa.table({"a": list(range(ROWS)), "k": [f"k{index % 37}" for index in range(ROWS)]}, schema=SCHEMA)


def per_subtask(result, word):
    """Return rows_in of the subtasks of the one vertex whose name has a word."""
    (vertex,) = (vertex for vertex in result.vertices if word in vertex.name)
    return [subtask.rows_in for subtask in vertex.subtasks]


def spread(environment, data, tmp_path, parallelism=4):
    """Run a data set into subtasks named "seen"; return rows in of each, and their rows by output part."""
    path = tmp_path / "out"
    data.filter(col("a") >= 0).set_parallelism(parallelism).name("seen").write_parquet(path)
    result = environment.execute("spread")
    parts = [pq.read_table(part).to_pylist() for part in sorted(path.iterdir())]
    return per_subtask(result, "seen"), parts


CALLS = {
    "SHUFFLE": lambda data: data.shuffle(),
    "REBALANCE": lambda data: data.rebalance(),
    "RESCALE": lambda data: data.rescale(),
    "GLOBAL": lambda data: data.global_(),
    "KEYGROUP": lambda data: data.key_by("k"),
    "CUSTOM": lambda data: data.partition_custom(lambda key, count: int(key[1:]) % count, "k"),
}


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("kind", CALLS)
def test_every_row_arrives_once_in_every_mode(any_environment, rows, kind):
    data = any_environment.from_arrow(rows)
    assert_same_rows(rows_of(CALLS[kind](data).to_arrow()), rows_of(rows))
    assert CALLS[kind](data.rebalance().set_parallelism(3)).set_parallelism(2).count() == ROWS


@pytest.mark.quick
@pytest.mark.parametrize("kind", CALLS)
def test_explain_names_the_partitioner(environment, rows, kind):
    text = CALLS[kind](environment.from_arrow(rows)).filter(col("a") > 1).explain()
    assert kind in text
    assert "asked for" in text


def test_broadcast_gives_every_subtask_all_rows(environment, rows, tmp_path):
    counts, parts = spread(environment, environment.from_arrow(rows).broadcast(), tmp_path, 3)
    assert counts == [ROWS] * 3
    assert all(sorted(row["a"] for row in part) == list(range(ROWS)) for part in parts)
    assert environment.from_arrow(rows).broadcast().count() == 2 * ROWS


def test_global_gives_all_rows_to_subtask_0(environment, rows, tmp_path):
    assert spread(environment, environment.from_arrow(rows).global_(), tmp_path)[0] == [ROWS, 0, 0, 0]


def test_a_function_over_partitions_sees_all_rows_after_broadcast_and_its_own_after_others(open_environment, rows):
    environment = open_environment(parallelism__default=3)
    schema = pa.schema([("n", pa.int64())])
    data = environment.from_arrow(rows)

    def counted(spread):
        return sorted(row.n for row in spread.map_partition(lambda own: [(sum(1 for _ in own),)], schema).collect())

    assert counted(data.broadcast()) == [ROWS] * 3
    assert counted(data.global_()) == [0, 0, ROWS]
    assert sum(counted(data.key_by("k"))) == ROWS


@pytest.mark.parametrize("call", ["broadcast", "custom"])
def test_what_is_spread_goes_into_a_union_that_a_join_reads(open_environment, rows, call):
    environment = open_environment(parallelism__default=2)
    data = environment.from_arrow(rows)
    apart = data.broadcast() if call == "broadcast" else data.partition_custom(lambda a, count: a % count, "a")
    keys = data.select("k", col("a").alias("other")).filter(col("other") < 37)
    hint = JoinHint.REPARTITION_HASH_SECOND
    assert apart.union(data).join(keys, on="k", hint=hint).count() == (3 if call == "broadcast" else 2) * ROWS


def test_forward_keeps_a_total_order(open_environment, rows):
    environment = open_environment(parallelism__default=3)
    data = environment.from_arrow(rows).shuffle().sort("a", descending=True).set_parallelism(3).forward()
    assert data.filter(col("a") >= 0).to_arrow().column("a").to_pylist() == list(range(ROWS))[::-1]


def test_rebalance_counts_differ_by_at_most_one(environment, rows, tmp_path):
    counts, _ = spread(environment, environment.from_arrow(rows).rebalance(), tmp_path, 7)
    assert sum(counts) == ROWS
    assert max(counts) - min(counts) <= 1


def test_shuffle_is_uniform(environment, tmp_path):
    table = pa.table({"a": pa.array(range(1_000_000), pa.int64())})
    counts, _ = spread(environment, environment.from_arrow(table).shuffle(), tmp_path, 8)
    expected = 1_000_000 / 8
    # 24.3 is exceeded once in a thousand; 60 is not seen by chance
    assert sum((found - expected) ** 2 / expected for found in counts) < 60
    assert len(set(counts)) > 1


#: (producers, consumers): which producer feeds which consumer
RESCALED = {
    (2, 4): {(0, 0), (0, 1), (1, 2), (1, 3)},
    (4, 2): {(0, 0), (1, 0), (2, 1), (3, 1)},
    (3, 3): {(0, 0), (1, 1), (2, 2)},
}


@pytest.mark.parametrize(("producers", "consumers"), RESCALED)
def test_rescale_feeds_neighbours_only(environment, rows, tmp_path, producers, consumers):
    origin = environment.from_arrow(rows).partition_custom(lambda a, count: a % count, "a").set_parallelism(producers)
    _, parts = spread(environment, origin.select("a", "k").rescale(), tmp_path, consumers)
    edges = {(row["a"] % producers, part) for part, rows_of in enumerate(parts) for row in rows_of}
    assert edges == RESCALED[producers, consumers]


def test_forward_stays_in_its_subtask_and_in_its_vertex(environment, rows, tmp_path):
    origin = environment.from_arrow(rows).partition_custom(lambda a, count: a % count, "a").set_parallelism(3)
    path = tmp_path / "out"
    origin.filter(col("a") >= 0).forward().with_columns(b=col("a")).write_parquet(path)
    result = environment.execute()
    assert len(result.vertices) == 2
    parts = [pq.read_table(part).to_pylist() for part in sorted(path.iterdir())]
    assert [{row["a"] % 3 for row in part} for part in parts] == [{0}, {1}, {2}]


@pytest.mark.quick
def test_forward_between_unequal_parallelisms_names_both_operators(environment, rows):
    data = environment.from_arrow(rows).rebalance().set_parallelism(2).filter(col("a") > 1).name("upper")
    with pytest.raises(PlanError, match=r"does not allow change of parallelism.*'upper'.* 2.*'lower'.* 3"):
        data.forward().filter(col("a") > 2).set_parallelism(3).name("lower").explain()


def test_no_partitioning_forwards_between_equals_and_rebalances_between_others(environment, rows):
    data = environment.from_arrow(rows).rebalance().set_parallelism(2).filter(col("a") > 1)
    equal = data.map_batches(lambda batch: batch, SCHEMA).set_parallelism(2).explain()
    assert equal.count("REBALANCE") == 1 + equal.count("PARTITION_FORCED_REBALANCE")
    other = data.map_batches(lambda batch: batch, SCHEMA).set_parallelism(3).explain()
    assert "PARTITION_FORCED_REBALANCE(REBALANCE) (from 2 to 3 subtasks)" in other


@pytest.mark.quick
def test_key_by_goes_where_flink_goes(environment, tmp_path):
    keys = ["EUR", "USD", "hello"]
    table = pa.table({"a": [1, 2, 3], "k": keys}, schema=SCHEMA)
    _, parts = spread(environment, environment.from_arrow(table).key_by("k"), tmp_path, 4)
    assert {row["k"]: part for part, found in enumerate(parts) for row in found} == {"EUR": 3, "USD": 2, "hello": 1}


def test_key_by_and_group_by_need_one_exchange(environment, rows):
    data = environment.from_arrow(rows).key_by("k").group_by("k").agg(n=count())
    text = data.explain()
    assert "SINGLE" in text
    assert text.count("PARTITION_HASH") == 1
    assert {row.k: row.n for row in data.collect()} == Counter(rows.column("k").to_pylist())


def test_a_join_does_not_take_key_groups_for_hashes(open_environment, rows):
    environment = open_environment(parallelism__default=3)
    left = environment.from_arrow(rows).key_by("k")
    right = environment.from_arrow(rows).select(col("k"), col("a").alias("b"))
    joined = left.join(right, on="k", hint="REPARTITION_HASH_SECOND")
    expected = sum(found * found for found in Counter(rows.column("k").to_pylist()).values())
    assert joined.count() == expected
    assert len([line for line in joined.explain().splitlines() if "─ " in line and "PARTITION_HASH" in line]) == 3


def test_key_by_refuses_null_keys_by_name(environment):
    table = pa.table({"a": [1, 2], "k": ["x", None]}, schema=SCHEMA)
    with pytest.raises(DataError, match=r"Assigned key must not be null!.*k"):
        environment.from_arrow(table).key_by("k").count()


def test_a_range_never_divides_a_key(environment, tmp_path):
    table = pa.table({"a": list(range(ROWS)), "k": ["hot" if i % 10 else f"k{i}" for i in range(ROWS)]}, schema=SCHEMA)
    _, parts = spread(environment, environment.from_arrow(table).rebalance().partition_by_range("k"), tmp_path, 4)
    homes = defaultdict(set)
    for part, found in enumerate(parts):
        for row in found:
            homes[row["k"]].add(part)
    assert len(homes) == 101
    assert all(len(home) == 1 for home in homes.values())


def test_range_partitions_are_about_even(environment, tmp_path):
    table = pa.table({"a": list(range(20_000)), "k": [f"{i * 7919 % 20_000:05d}" for i in range(20_000)]})
    counts, _ = spread(environment, environment.from_arrow(table).partition_by_range("k"), tmp_path, 4)
    assert sum(counts) == 20_000
    assert max(counts) < 1.5 * 5_000


def test_range_partitions_do_not_overlap(environment, rows, tmp_path):
    _, parts = spread(environment, environment.from_arrow(rows).partition_by_range("k", "a"), tmp_path, 3)
    found = [sorted((row["k"], row["a"]) for row in part) for part in parts if part]
    assert sum(map(len, found)) == ROWS
    assert all(lower[-1] < upper[0] for lower, upper in pairwise(found))


def test_custom_partitions_are_those_of_the_function(environment, rows, tmp_path):
    data = environment.from_arrow(rows).partition_custom(lambda a, k, count: (a + len(k)) % count, "a", "k")
    counts, parts = spread(environment, data, tmp_path, 4)
    assert sum(counts) == ROWS
    assert all((row["a"] + len(row["k"])) % 4 == part for part, found in enumerate(parts) for row in found)
    assert set(parts[0][0]) == {"a", "k"}


def test_a_custom_partition_keeps_only_what_is_used(environment, rows):
    data = environment.from_arrow(rows).partition_custom(lambda key, count: 0, "k").select("a")
    assert data.to_arrow().schema.names == ["a"]
    assert sorted(data.to_arrow().column("a").to_pylist()) == list(range(ROWS))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda key, count: count, "channel"),
        (lambda key, count: -1, "channel"),
        (lambda key, count: "0", "channel"),
        (lambda key, count: None, "channel"),
        (lambda key, count: 1 // 0, "ZeroDivisionError"),
        (lambda key: 0, "argument"),
    ],
)
def test_a_custom_function_that_fails_is_named_with_its_line(environment, rows, function, text):
    with pytest.raises(JobExecutionError) as caught:
        environment.from_arrow(rows).partition_custom(function, "k").count()
    assert text in str(caught.value)
    assert "<lambda>" in str(caught.value)
    assert "test_partitioning.py" in str(caught.value)


def test_the_last_of_two_partitionings_counts(environment, rows):
    text = environment.from_arrow(rows).shuffle().key_by("k").filter(col("a") > 1).explain()
    assert "SHUFFLE" not in text
    assert "KEYGROUP" in text
    text = environment.from_arrow(rows).key_by("k").forward().filter(col("a") > 1).explain()
    assert "KEYGROUP" in text


def test_a_named_partitioning_stays_visible(environment, rows):
    data = environment.from_arrow(rows).shuffle().name("stir")
    assert "stir" in data.filter(col("a") > 1).explain()
    assert data.filter(col("a") > 1).count() == ROWS - 2


def test_one_partitioning_may_have_two_readers(environment, rows):
    shared = environment.from_arrow(rows).partition_custom(lambda key, count: len(key) % count, "k")
    one = shared.filter(col("a") < 10)
    two = shared.filter(col("a") >= 990)
    assert sorted(row.a for row in one.union(two).collect()) == [*range(10), *range(990, 1000)]


@pytest.mark.parametrize("kind", ["SHUFFLE", "REBALANCE", "KEYGROUP"])
def test_few_rows_stay_spread_where_the_job_adapts_to_sizes(open_environment, rows, tmp_path, kind):
    environment = open_environment(parallelism__default=4, execution__mode="BATCH")
    spread_rows = CALLS[kind](environment.from_arrow(rows))
    spread_rows.filter(col("a") >= 0).name("seen").write_parquet(tmp_path / "out")
    counts = per_subtask(environment.execute(), "seen")
    assert len(counts) == 4
    assert all(counts)


def test_partitionings_pass_through_blocking_exchanges(open_environment, rows):
    environment = open_environment(execution__mode="BATCH_FORCED")
    for kind, call in CALLS.items():
        assert call(environment.from_arrow(rows)).count() == ROWS, kind
    assert environment.from_arrow(rows).broadcast().count() == 2 * ROWS


@pytest.mark.quick
def test_wrong_keys_are_schema_errors_at_once(environment, rows):
    data = environment.from_arrow(rows)
    nested = environment.from_rows([([1],)], pa.schema([("x", pa.list_(pa.int64()))]))
    for call in (
        data.key_by,
        lambda: data.key_by("nope"),
        lambda: data.key_by("k", "k"),
        data.partition_by_range,
        lambda: data.partition_custom(lambda key, count: 0),
        lambda: data.partition_custom(17, "k"),
        lambda: nested.key_by("x"),
        lambda: nested.partition_by_range("x"),
        lambda: data.with_columns(__channel=col("a")).partition_custom(lambda key, count: 0, "k"),
    ):
        with pytest.raises(SchemaError):
            call()


def test_equal_keys_are_together_for_every_partitioning_by_keys(environment, rows, tmp_path):
    for index, data in enumerate([CALLS["KEYGROUP"], CALLS["CUSTOM"], lambda data: data.partition_by_range("k")]):
        (tmp_path / str(index)).mkdir()
        _, parts = spread(environment, data(environment.from_arrow(rows)), tmp_path / str(index), 3)
        homes = defaultdict(set)
        for part, found in enumerate(parts):
            for row in found:
                homes[row["k"]].add(part)
        assert all(len(home) == 1 for home in homes.values())


@pytest.mark.parametrize(("text", "timeout_ms"), [("7 ms", 7), ("0", 0), ("-1", -1)])
def test_the_buffer_time_out_of_a_job_reaches_its_writers(open_environment, monkeypatch, rows, text, timeout_ms):
    written, flushed = set(), set()
    build, register = RecordWriterBuilder.build, OutputFlusher.register

    def building(self):
        written.add(self._timeout_ms)
        return build(self)

    def registering(self, writer, timeout):
        flushed.add(timeout)
        register(self, writer, timeout)

    monkeypatch.setattr(RecordWriterBuilder, "build", building)
    monkeypatch.setattr(OutputFlusher, "register", registering)
    environment = open_environment(**{"execution.buffer-timeout": text})
    assert environment.from_arrow(rows).shuffle().count() == ROWS
    assert written == flushed == {timeout_ms}
