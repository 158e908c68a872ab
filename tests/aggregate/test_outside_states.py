"""Values of groups that lie outside of the table, and numbers of every width in it."""

import contextlib
import math
import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from engine.aggregate import pre_aggregation
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.hash_aggregate import HashAggregate
from engine.iomanager.spill_identity import SpillIdentity
from engine.memory.manager import MemoryManager
from engine.memory.value_stores import any_open
from engine.records.batch_limits import BATCH_BYTES_MAX
from engine.records.outside_values import set_outside_bytes
from tests.aggregate.group_oracle import ALL, input_table, make_calls, oracle, rows_of, single, two_phases

KEYS = 25
TEXTS = ("min", "max", "first", "last", "count")


@pytest.fixture
def wide_from_100_bytes() -> Iterator[None]:
    set_outside_bytes(100)
    yield
    set_outside_bytes()


class WideWorkshop:
    """Memory and files as a workshop's, where the files of values stay until their space is closed."""

    def __init__(self, workshop):
        self._workshop = workshop

    @contextlib.contextmanager
    def operator(self, pages, page_size=4096):
        with (
            MemoryManager(pages * page_size, page_size) as manager,
            manager.pool("operator", pages) as pool,
            self._workshop.io.space(SpillIdentity("0" * 32, 0, 0, 0)) as space,
        ):
            yield pool, space
            assert pool.pages_used == 0
            assert self._workshop.files() != [], "values lay outside"
        assert self._workshop.files() == []


def texts(rng, count):
    """Values inside and outside of rows; most of them tie with others for longer than a reference shows."""
    prefixes = ["p" * 150, "p" * 99, "q" * 400, ""]
    return [
        None if rng.random() < 0.1 else rng.choice(prefixes) + rng.choice(["", "a", "b" * 40, "p" * rng.randrange(60)])
        for _ in range(count)
    ]


def table_of(data_type, make_values, functions, rows=1500):
    rng = random.Random(7)
    calls = make_calls(functions)
    values = make_values(rng, rows)
    columns = [[rng.randrange(KEYS) for _ in range(rows)], *[values for call in calls if call.argument is not None]]
    types = [None if call.argument is None else data_type for call in calls]
    return input_table(("key",), [pa.int64()], calls, types, columns), calls


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("pages", [6, 60])
@pytest.mark.parametrize("phases", [single, two_phases])
def test_values_that_tie_beyond_what_their_references_show_are_compared_whole(
    workshop, wide_from_100_bytes, phases, pages, data_type
):
    encode = (lambda text: text) if data_type == pa.string() else (lambda text: None if text is None else text.encode())
    table, calls = table_of(data_type, lambda rng, count: [encode(text) for text in texts(rng, count)], TEXTS)
    result, *_ = phases(WideWorkshop(workshop), pages, table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)


def some(make):
    return lambda rng, count: [None if rng.random() < 0.1 else make(rng) for _ in range(count)]


@pytest.mark.parametrize(
    ("data_type", "make"),
    [
        (pa.int16(), lambda rng: rng.choice([-(2**15), 2**15 - 1, rng.randrange(-9, 9)])),
        (pa.int32(), lambda rng: rng.choice([-(2**31), 2**31 - 1, rng.randrange(-9, 9)])),
        (pa.uint16(), lambda rng: rng.choice([0, 2**16 - 1, rng.randrange(9)])),
        (pa.uint32(), lambda rng: rng.choice([0, 2**32 - 1, rng.randrange(9)])),
        (pa.float16(), lambda rng: rng.choice([math.nan, 2048.0, -0.5, rng.randrange(-64, 64) / 4])),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "values",
)
@pytest.mark.parametrize("phases", [single, two_phases])
def test_numbers_of_every_width_aggregate_like_the_oracle(workshop, phases, data_type, make):
    table, calls = table_of(data_type, some(make), ALL)
    result, *_ = phases(workshop, 60, table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("phases", [single, two_phases])
def test_groups_take_references_when_the_first_wide_value_comes_late(workshop, wide_from_100_bytes, phases, data_type):
    """Before it, values are compared as they are; behind it, some of the same groups and keys are references."""
    rng = random.Random(3)
    early = ["p" * rng.randrange(99) for _ in range(900)]
    values = [*early, *texts(rng, 600)]
    keys = [*[rng.choice("abc") for _ in early], *[rng.choice(["a", "b", "c" * 120]) for _ in range(600)]]
    calls = make_calls(TEXTS)
    table = input_table(("key",), [data_type], calls, [data_type] * len(TEXTS), [keys, *[values] * len(TEXTS)])
    assert not any_open(), "no value lies outside at first"
    result, *_ = phases(WideWorkshop(workshop), 60, table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)


@pytest.mark.parametrize("pages", [66, 130, 600])
@pytest.mark.parametrize("phases", [single, two_phases])
def test_groups_in_partitions_are_left_to_the_table_where_values_lie_outside(
    workshop, wide_from_100_bytes, monkeypatch, phases, pages
):
    """Rows are merged where they lie until one has a reference."""
    monkeypatch.setattr("engine.aggregate.grouping_phase.CACHED_GROUPS", 64)
    rng = random.Random(5)
    keys = [f"{rng.randrange(900)}" * (1 + 60 * (row > 1200 and rng.random() < 0.1)) for row in range(2500)]
    values = ["p" * rng.randrange(99) if row < 1200 else text for row, text in enumerate(texts(rng, 2500))]
    calls = make_calls(TEXTS)
    table = input_table(("key",), [pa.string()], calls, [pa.string()] * len(TEXTS), [keys, *[values] * len(TEXTS)])
    result, *_ = phases(WideWorkshop(workshop), pages, table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)


def keys_table(rows, distinct, size):
    keys = [f"{index % distinct:06}".encode() * (size // 6) for index in range(rows)]
    return input_table(("key",), [pa.binary()], [], [], [keys])


@pytest.mark.parametrize("phase", ["partial", "single"])
def test_batches_of_wide_keys_are_as_many_bytes_as_others(workshop, wide_from_100_bytes, phase):
    table = keys_table(6, 6, BATCH_BYTES_MAX // 2)
    with WideWorkshop(workshop).operator(60) as (pool, space):
        operator = HashAggregate(AggregateSpec(phase, table.schema, ("key",), (), table.schema), pool, space)
        early = [batch for part in table.to_batches(1) for batch in operator.add_batch(part)]
        batches = [*early, *operator.finish()]
        operator.close()
        assert [batch.num_rows for batch in batches] == [1] * 6
        assert space.spilled_bytes == sum(len(key) for key in table.column("key").to_pylist())


def test_keys_that_repeat_are_put_aside_once(workshop, wide_from_100_bytes):
    table = keys_table(90, 3, 600)
    with WideWorkshop(workshop).operator(6) as (pool, space):
        operator = HashAggregate(AggregateSpec("partial", table.schema, ("key",), (), table.schema), pool, space)
        assert not [batch for part in table.to_batches(10) for batch in operator.add_batch(part)]
        assert sum(batch.num_rows for batch in operator.finish()) == 3
        operator.close()
        assert space.spilled_bytes == 3 * 600


@pytest.mark.parametrize(("distinct", "aside"), [(100, 20), (4, 4)])
def test_a_partial_passes_wide_keys_that_do_not_repeat(workshop, wide_from_100_bytes, monkeypatch, distinct, aside):
    monkeypatch.setattr(pre_aggregation, "PASS_BYTES", 20 * 600)
    table = keys_table(100, distinct, 600)
    with WideWorkshop(workshop).operator(60) as (pool, space):
        operator = HashAggregate(AggregateSpec("partial", table.schema, ("key",), (), table.schema), pool, space)
        early = [batch for part in table.to_batches(10) for batch in operator.add_batch(part)]
        rows = [row for batch in (*early, *operator.finish()) for row in batch.column(0).to_pylist()]
        operator.close()
        assert sorted(rows) == sorted(set(table.column("key").to_pylist()))
        assert space.spilled_bytes == aside * 600
