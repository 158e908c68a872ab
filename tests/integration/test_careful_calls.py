"""Async functions, functions that are called again, and rows for which a function may fail."""

import asyncio
import dataclasses
import typing

import pyarrow as pa
import pytest

from engine import JobExecutionError, SchemaError, col, count

pytestmark = pytest.mark.usefixtures("one_zygote")

ONE = pa.schema([("y", pa.int64())])
TWO = pa.schema([("x", pa.int64()), ("y", pa.string())])


@pytest.fixture(params=["process", "thread"])
def data(open_environment, request):
    environment = open_environment(**{"python.execution-mode": request.param, "parallelism.default": 1})
    return environment.from_arrow(pa.table({"x": range(1000), "t": ["a"] * 1000}))


class Gauge:
    """An async function that tells how many of its calls were in flight."""

    def open(self, context):
        self.now = self.most = 0

    async def map(self, row):
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001 * (row.x % 3))
        self.now -= 1
        return row.x, str(self.most)


@pytest.mark.parametrize("concurrency", [1, 7])
def test_calls_of_an_async_function_are_made_side_by_side_and_keep_the_order(data, concurrency):
    found = data.limit(300).map(Gauge(), TWO, concurrency=concurrency).collect()
    assert [row.x for row in found] == list(range(300))
    assert max(int(row.y) for row in found) == concurrency


def test_an_async_function_may_be_called_with_values(data):
    async def tripled(x: int) -> int:
        await asyncio.sleep(0)
        return 3 * x

    assert [row.y for row in data.map(tripled, ONE, columns="x").collect()] == list(range(0, 3000, 3))


def test_a_failing_async_function_names_its_row_and_leaves_no_call_behind(data):
    async def fails(row):
        await asyncio.sleep(0)
        if row.x == 500:
            raise ValueError("no answer")
        return (row.x,)

    with pytest.raises(JobExecutionError, match=r"(?s)ValueError: no answer.*fails.*Row\(x=500"):
        data.map(fails, ONE, concurrency=9).collect()


class Flaky:
    """Fails for each third row, as often as it is told."""

    def __init__(self, times):
        self.times = times

    def open(self, context):
        self.failed = {}
        self.calls = context.counter("calls")

    def map(self, row):
        self.calls.add()
        done = self.failed.get(row.x, 0)
        if row.x % 3 == 0 and done < self.times:
            self.failed[row.x] = done + 1
            raise ConnectionError(f"try again {row.x}")
        return (row.x,)


class AsyncFlaky(Flaky):
    async def map(self, row):
        await asyncio.sleep(0)
        return super().map(row)


@pytest.mark.parametrize("flaky", [Flaky, AsyncFlaky])
def test_a_call_that_fails_is_made_again_so_often_and_no_more(data, flaky):
    assert [row.y for row in data.map(flaky(2), ONE, retries=2, retry_delay=0.0001).collect()] == list(range(1000))
    with pytest.raises(JobExecutionError, match="ConnectionError: try again 0"):
        data.map(flaky(3), ONE, retries=2).collect()


def odd_only(row):
    if row.x % 5 == 0:
        raise ValueError(f"five {row.x}")
    if row.x % 5 == 1:
        return (row.x, "too", "many")
    if row.x % 5 == 2:
        return "no row"
    if row.x % 5 == 3:
        return ("text", row.t)
    return (row.x, row.t)


async def odd_only_async(row):
    return odd_only(row)


FINE = [(n, "a") for n in range(1000) if n % 5 == 4]


@pytest.mark.parametrize("function", [odd_only, odd_only_async])
def test_rows_that_fail_or_do_not_fit_are_left_out_or_null(data, function):
    assert data.map(function, TWO, on_error="skip").collect() == FINE
    found = data.map(function, TWO, on_error="null").collect()
    assert found == [(n, "a") if n % 5 == 4 else (None, None) for n in range(1000)]


async def spread_async(row):
    await asyncio.sleep(0.001 * (row.x % 3))
    return [(row.x, str(n)) for n in range(row.x % 4)]


async def spread_generator(row):
    for n in range(row.x % 4):
        await asyncio.sleep(0)
        yield row.x, str(n)


SPREAD = [(x, str(n)) for x in range(1000) for n in range(x % 4)]


@pytest.mark.parametrize("function", [spread_async, spread_generator])
def test_an_async_flat_map_keeps_the_order_of_the_rows(data, function):
    assert data.flat_map(function, TWO, concurrency=20).collect() == SPREAD


def test_a_flat_map_may_give_more_rows_than_a_batch_has(data):
    async def many(row):
        return [(row.x, "m")] * 20_000

    found = data.limit(4).flat_map(many, TWO).group_by("x").agg(n=count()).sort("x").collect()
    assert found == [(x, 20_000) for x in range(4)]


def halves(row):
    """Fail for each third row behind its first result; each fifth has a row that does not fit."""
    yield row.x, "first"
    if row.x % 3 == 0:
        raise ValueError("third")
    yield ("text", "second") if row.x % 5 == 0 else (row.x, "second")


async def halves_async(row):
    for each in halves(row):
        yield each


@pytest.mark.parametrize("function", [halves, halves_async])
def test_a_flat_map_that_fails_gives_nothing_or_one_row_of_nulls(data, function):
    def expected(replacement):
        for x in range(1000):
            if x % 3 == 0:
                yield from replacement
                continue
            yield x, "first"
            yield from replacement if x % 5 == 0 else [(x, "second")]

    assert data.flat_map(function, TWO, on_error="skip").collect() == list(expected([]))
    assert data.flat_map(function, TWO, on_error="null", retries=1).collect() == list(expected([(None, None)]))
    errors = data.flat_map(function, TWO, on_error="collect").filter(col("error").is_not_null()).select("error")
    assert {row.error for row in errors.collect()} == {
        "ValueError: third",
        "returned 'text' (str) for column 'x' of type int64",
    }
    with pytest.raises(JobExecutionError, match=r"(?s)flat_map must return an iterable of rows, not int"):
        data.flat_map(lambda row: row.x, TWO, retries=1).collect()


def test_failures_are_collected_with_their_reasons(data):
    found = data.map(odd_only, TWO, on_error="collect")
    given = pa.struct([("x", pa.int64()), ("t", pa.string())])
    added = [("error", pa.string()), ("error_place", pa.string()), ("error_input", given)]
    assert found.schema == pa.schema([*TWO, *map(pa.field, *zip(*added, strict=True))])
    assert found.filter(col("error").is_null()).select("x", "y").collect() == FINE
    first = found.limit(5).collect()
    assert [row.error for row in first] == [
        "ValueError: five 0",
        "returned 3 values, the schema has 2: x, y",
        "returned str; expected a tuple, a dict or a row",
        "returned 'text' (str) for column 'x' of type int64",
        None,
    ]
    line = odd_only.__code__.co_firstlineno
    assert [row.error_place for row in first] == [f"{__file__}, line {n}" for n in (line + 2, *[line] * 3)] + [None]
    assert [row.error_input for row in first] == [{"x": n, "t": "a"} for n in range(4)] + [None]


class Given(typing.NamedTuple):
    x: int
    t: str = "a"


def of_number(x):
    return odd_only(Given(x))


async def of_number_async(x):
    return odd_only(Given(x))


@pytest.mark.parametrize(
    ("function", "columns"), [(odd_only, None), (odd_only_async, None), (of_number, "x"), (of_number_async, "x")]
)
def test_the_row_that_failed_is_kept_whole_beside_its_error(data, function, columns):
    failed = data.map(function, TWO, columns, on_error="collect").filter(col("error").is_not_null())
    assert [row.error_input for row in failed.collect()] == [{"x": n, "t": "a"} for n in range(1000) if n % 5 != 4]
    assert failed.drop("error_input").count() == 800
    again = failed.select(x=col("error_input").field("x") * 5 + 4, t=col("error_input").field("t"))
    assert again.map(odd_only, TWO).count() == 800


def test_results_of_one_wide_row_that_fail_are_not_put_together(open_environment):
    environment = open_environment(**{"parallelism.default": 1})
    wide = environment.from_arrow(pa.table({"id": range(3), "text": ["a" * 1_000_000] * 3}))
    failed = wide.flat_map(lambda row: ["unfit"] * 40 + [(row.id,)], ONE, on_error="collect")
    with failed.to_batches() as batches:
        found = [(batch.num_rows, batch.column("error_input").field("id").to_pylist()) for batch in batches]
    assert max(rows for rows, _ in found) <= 2
    assert [number for _, numbers in found for number in numbers] == [*[0] * 40, None, *[1] * 40, None, *[2] * 40, None]


EVERY_TYPE = {
    "list": pa.array([[1, None], None], pa.list_(pa.int32())),
    "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    "struct": pa.array([{"a": [1.5]}, None], pa.struct([("a", pa.list_(pa.float64()))])),
    "decimal": pa.array([1, None], pa.decimal128(20, 2)),
    "wide_decimal": pa.array([1, None], pa.decimal256(50, 2)),
    "time": pa.array([1, None], pa.timestamp("ns", "Europe/Berlin")),
    "date": pa.array([1, None], pa.date32()),
    "time_of_day": pa.array([1, None], pa.time64("us")),
    "duration": pa.array([1, None], pa.duration("ms")),
    "binary": pa.array([b"\xff", None]),
    "fixed": pa.array([b"ab", None], pa.binary(2)),
    "code": pa.array(["x", None]).dictionary_encode(),
    "nothing": pa.nulls(2),
    "small": pa.array([1, None], pa.uint8()),
    "truth": pa.array([True, None]),
}


def test_rows_that_failed_have_values_of_every_type(two_environments):
    rows = two_environments.from_arrow(pa.table(EVERY_TYPE))
    failed = rows.map(lambda row: 1 / 0, ONE, on_error="collect").rebalance().sort("error")
    inputs = failed.select(**{name: col("error_input").field(name) for name in EVERY_TYPE}).to_arrow()
    given = rows.to_arrow()
    for name in EVERY_TYPE:
        assert inputs[name].type == given[name].type
        assert sorted(map(str, inputs[name].to_pylist())) == sorted(map(str, given[name].to_pylist()))


@dataclasses.dataclass
class Point:
    y: str
    x: int


@pytest.mark.parametrize("shape", [lambda x: {"x": x, "y": "d"}, lambda x: Point("d", x), lambda x: [x, "d"]])
def test_all_shapes_of_rows_are_collected(data, shape):
    found = data.limit(3).map(lambda row: shape(row.x), TWO, on_error="collect").collect()
    assert found == [(n, "d", None, None, None) for n in range(3)]


def test_the_job_counts_the_rows_that_failed(open_environment, tmp_path):
    environment = open_environment()
    data = environment.from_arrow(pa.table({"x": range(100), "t": ["a"] * 100}))
    data.map(odd_only, TWO, on_error="skip").write_parquet(str(tmp_path / "out"))
    assert environment.execute().counters == {"rows for which odd_only failed": 80}


def test_what_does_not_go_together_is_refused_at_once(data):
    async def awaited(row):
        return (row.x,)

    plain = odd_only
    for options in (
        {"concurrency": 4},
        {"retries": -1},
        {"retry_delay": -1.0},
        {"on_error": "ignore"},
    ):
        with pytest.raises(SchemaError, match="map: "):
            data.map(plain, TWO, **options)
    with pytest.raises(SchemaError, match="concurrency=0"):
        data.map(awaited, ONE, concurrency=0)
    for name in ("error", "error_place", "error_input"):
        with pytest.raises(SchemaError, match=f"adds a column '{name}'"):
            data.map(plain, pa.schema([(name, pa.string())]), on_error="collect")
    with pytest.raises(SchemaError, match="flat_map: concurrency=4"):
        data.flat_map(plain, TWO, concurrency=4)
    with pytest.raises(SchemaError, match="async functions are for map"):
        data.map_partition(awaited, ONE)
    with pytest.raises(SchemaError, match="schema= is missing"):
        data.map(awaited)
