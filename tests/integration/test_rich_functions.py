"""Functions that are opened and closed: their context, counters, broadcast data sets, and failures in each step."""

import asyncio
import os
from pathlib import Path

import pyarrow as pa
import pytest

from engine import JobExecutionError, SchemaError
from engine.errors import MemoryBudgetError
from tests.integration.row_oracle import assert_same_rows

pytestmark = pytest.mark.usefixtures("one_zygote")

ONE = pa.schema([("a", pa.int64())])
TWO = pa.schema([("a", pa.int64()), ("t", pa.string())])
NAMES = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture(params=["process", "thread"])
def env(request, open_environment):
    return open_environment(**{"python.execution-mode": request.param, "parallelism.default": 3})


def numbers(env, row_count=3000):
    return env.from_arrow(pa.table({"a": range(row_count)})).rebalance().set_parallelism(3)


class Recorder:
    """Writes down what happens to it, one file for each event and subtask."""

    def __init__(self, folder, fail_in=""):
        self.folder = str(folder)
        self.fail_in = fail_in

    def note(self, event):
        with Path(self.folder, f"{event}-{self.index}").open("a") as file:
            file.write("x")
        if event == self.fail_in:
            raise ValueError(f"failed in {event}")

    def open(self, context):
        self.index, self.parallelism = context.subtask_index, context.parallelism
        self.rows = context.counter("rows")
        self.note("open")

    def close(self):
        self.note("close")

    def map(self, row):
        self.rows.add()
        if row.a == 1500:
            self.note("row")
        return (self.index * 10 + self.parallelism,)

    def filter(self, row):
        self.map(row)
        return row.a % 2 == 0

    def flat_map(self, row):
        yield self.map(row)
        yield self.map(row)

    def map_batches(self, batch):
        self.rows.add(batch.num_rows)
        return batch

    def map_partition(self, rows):
        for row in rows:
            yield self.map(row)

    def reduce(self, rows):
        yield from (self.map(row) for row in rows)

    def co_group(self, left, right):
        yield from (self.map(row) for row in left)
        yield from (self.map(row) for row in right)


def events(folder):
    """Return how often each event happened in each subtask."""
    return {path.name: path.stat().st_size for path in Path(folder).iterdir()}


CALLS = {
    "map": lambda data, fn: data.map(fn, ONE),
    "filter": lambda data, fn: data.filter(fn),
    "flat_map": lambda data, fn: data.flat_map(fn, ONE),
    "map_batches": lambda data, fn: data.map_batches(fn, ONE),
    "map_partition": lambda data, fn: data.map_partition(fn, ONE),
    "reduce": lambda data, fn: data.group_by("a").reduce(fn, ONE),
    "co_group": lambda data, fn: data.co_group(data, "a", fn, ONE),
}


@pytest.mark.quick
@pytest.mark.parametrize("kind", CALLS)
def test_open_and_close_run_once_in_each_subtask_and_counters_are_summed(env, kind, tmp_path):
    folder = tmp_path / "events"
    folder.mkdir()
    CALLS[kind](numbers(env), Recorder(folder)).write_parquet(tmp_path / "out")
    result = env.execute(kind)
    seen = {name: count for name, count in events(folder).items() if not name.startswith("row")}
    assert seen == {f"{event}-{index}": 1 for event in ("open", "close") for index in range(3)}
    calls = 6000 if kind in ("flat_map", "co_group") else 3000
    assert result.counters == {"rows": calls}


def test_the_context_tells_subtask_and_parallelism(env, tmp_path):
    found = {row.a for row in numbers(env).map(Recorder(tmp_path), ONE).collect()}
    assert found == {3, 13, 23}


@pytest.mark.parametrize("step", ["open", "row", "close"])
@pytest.mark.parametrize("kind", ["map", "map_partition", "reduce"])
def test_a_failure_in_any_step_fails_the_job_and_closes_what_was_opened(env, kind, step, tmp_path):
    data = numbers(env).set_parallelism(1) if kind != "reduce" else numbers(env)
    with pytest.raises(JobExecutionError) as caught:
        CALLS[kind](data, Recorder(tmp_path, step)).collect()
    text = str(caught.value)
    assert text.splitlines()[0] == f"ValueError: failed in {step}"
    assert "Recorder" in text
    assert "test_rich_functions.py" in text
    if step == "row":
        assert "a=1500" in text
        (index,) = (name[4:] for name in events(tmp_path) if name.startswith("row-"))
        assert events(tmp_path)[f"close-{index}"] == 1
    if step == "open":
        assert not [name for name in events(tmp_path) if name.startswith("close")]


def test_an_error_of_close_does_not_hide_the_cause(env):
    class Both:
        def map(self, row):
            raise ValueError("the cause")

        def close(self):
            raise KeyError("the consequence")

    with pytest.raises(JobExecutionError, match=r"^ValueError: the cause"):
        numbers(env).map(Both(), ONE).collect()


def test_a_function_whose_rows_nobody_wants_any_more_is_closed(env, tmp_path):
    class Endless(Recorder):
        def map_partition(self, rows):
            try:
                while True:
                    yield (1,)
            finally:
                self.note("unwound")

    data = env.from_rows([(1,)], ONE).map_partition(Endless(tmp_path), ONE)
    assert data.limit(20_000).count() == 20_000
    assert events(tmp_path) == {"open-0": 1, "unwound-0": 1, "close-0": 1}


def test_open_and_close_run_where_there_are_no_rows(env, tmp_path):
    nothing = numbers(env).filter(lambda row: False).map(Recorder(tmp_path), ONE)
    assert nothing.collect() == []
    assert events(tmp_path) == {f"{event}-{index}": 1 for event in ("open", "close") for index in range(3)}


class Named:
    def open(self, context):
        self.names = {row.id: row["name"] for row in context.broadcast("names")}
        self.same = context.broadcast("names") is context.broadcast("names")
        self.unknown = context.counter("unknown")

    def __call__(self, row):
        assert self.same
        if row.a not in self.names:
            self.unknown.inc()
        return row.a, self.names.get(row.a)


@pytest.mark.quick
def test_every_subtask_sees_whole_broadcast_data_sets(two_environments, tmp_path):
    env = two_environments
    names = env.from_rows([(n, f"name {n}") for n in range(0, 3000, 3)] + [(None, None)], NAMES).rebalance()
    named = numbers(env).map(Named(), TWO).with_broadcast(names=names.map(lambda row: row, NAMES))
    assert "BROADCAST, BATCH" in named.explain()
    assert_same_rows(named.collect(), [(n, None if n % 3 else f"name {n}") for n in range(3000)])
    named.write_parquet(tmp_path / "out")
    assert env.execute().counters == {"unknown": 2000}


def test_a_data_set_may_be_broadcast_to_a_function_over_itself(two_environments):
    class Share:
        def open(self, context):
            self.total = sum(row.a for row in context.broadcast("all"))
            assert len(context.broadcast("none")) == 0

        def map(self, row):
            return (self.total - row.a,)

        def reduce(self, rows):
            yield from map(self.map, rows)

        def co_group(self, left, right):
            assert sum(1 for _ in right) == 1
            yield from map(self.map, left)

    data = numbers(two_environments, 100)
    nothing = data.filter(lambda row: False)
    expected = [(4950 - n,) for n in range(100)]
    assert_same_rows(data.map(Share(), ONE).with_broadcast(all=data, none=nothing).collect(), expected)
    reduced = data.group_by("a").reduce(Share(), ONE).with_broadcast(all=data).with_broadcast(none=nothing)
    assert_same_rows(reduced.collect(), expected)
    whole = data.group_by().reduce(Share(), ONE).with_broadcast(none=nothing, all=data)
    assert_same_rows(whole.collect(), expected)
    paired = data.co_group(data, "a", Share(), ONE).name("pairs").with_broadcast(all=data, none=nothing)
    assert_same_rows(paired.collect(), expected)


def test_a_broadcast_data_set_that_is_too_large_says_how_large_it_may_be(environment):
    large = environment.from_arrow(pa.table({"t": ["x" * 1000] * 1000})).flat_map(
        lambda row: ((row.t,) for _ in range(400)), pa.schema([("t", pa.string())])
    )
    with pytest.raises(MemoryBudgetError, match=r"broadcast data set 'large' of map Named is larger than \d+ bytes"):
        numbers(environment, 10).map(Named(), TWO).with_broadcast(large=large).collect()


def test_what_is_no_function_or_no_broadcast_is_refused_at_once(environment):
    data = numbers(environment, 10)
    for wrong in (7, Recorder, object()):
        with pytest.raises(SchemaError, match="map"):
            data.map(wrong, ONE)
    with pytest.raises(SchemaError, match="pass an instance"):
        data.map(Recorder, ONE)
    with pytest.raises(SchemaError, match="right behind"):
        data.with_broadcast(names=data)
    with pytest.raises(SchemaError, match="no data set"):
        data.map(Named(), TWO).with_broadcast()
    with pytest.raises(SchemaError, match="expected a DataSet"):
        data.map(Named(), TWO).with_broadcast(names=[1])
    with pytest.raises(JobExecutionError, match=r"no broadcast data set 'names'; there are: none"):
        data.map(Named(), TWO).collect()


@pytest.mark.parametrize("kind", ["map_partition", "reduce"])
def test_a_worker_that_dies_in_the_middle_is_an_error_that_says_how(environment, kind):
    def dies(rows):
        for row in rows:
            if row.a == 15_000:
                os._exit(9)
            yield (row.a,)

    data = numbers(environment, 20_000)
    grouped = data.map(lambda row: (row.a,), ONE).group_by()
    failing = data.map_partition(dies, ONE) if kind == "map_partition" else grouped.reduce(dies, ONE)
    with pytest.raises(JobExecutionError, match=r"the Python worker exited with code 9 while running .*dies"):
        failing.collect()
    assert data.map_partition(lambda rows: [(sum(1 for _ in rows),)], ONE).count() == 3


class Service:
    """Opened and closed by coroutines that belong to one loop, as a client of a service does."""

    def __init__(self, folder, fail_in=""):
        self.folder, self.fail_in = str(folder), fail_in

    async def open(self, context):
        self.loop = asyncio.get_running_loop()
        self.waiting = self.loop.create_task(asyncio.sleep(3600))
        self.ready = self.loop.create_future()
        self.loop.call_soon(self.ready.set_result, 10)
        self.ten = await self.ready
        if self.fail_in == "open":
            raise ValueError("failed in open")

    async def close(self):
        assert asyncio.get_running_loop() is self.loop
        self.waiting.cancel()
        await asyncio.sleep(0.001)
        Path(self.folder, f"closed-{self.ten}").touch()
        if self.fail_in == "close":
            raise ValueError("failed in close")

    def flat_map(self, row):
        return [(row.a + self.ten,)]

    def filter(self, row):
        return self.ten == 10

    def map_partition(self, rows):
        return [(row.a + self.ten,) for row in rows]

    async def map(self, row):
        assert asyncio.get_running_loop() is self.loop
        assert not self.waiting.done()
        return (row.a + self.ten,)


@pytest.mark.parametrize("kind", ["map", "flat_map", "filter", "map_partition"])
def test_open_and_close_may_be_coroutines_in_the_loop_of_the_calls(env, tmp_path, kind):
    data = numbers(env, 100)
    service = Service(tmp_path)
    found = data.filter(service) if kind == "filter" else getattr(data, kind)(service, ONE)
    more = 0 if kind == "filter" else 10
    assert sorted(row.a for row in found.collect()) == [n + more for n in range(100)]
    assert (tmp_path / "closed-10").exists()


@pytest.mark.parametrize("step", ["open", "close"])
def test_a_coroutine_that_fails_to_open_or_close_is_an_error_with_its_place(env, tmp_path, step):
    with pytest.raises(JobExecutionError, match=rf"(?s)ValueError: failed in {step}.*Service.{step}"):
        numbers(env, 10).map(Service(tmp_path, step), ONE).collect()
