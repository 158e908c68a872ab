"""When a table hands over to partitions: by what rows have met in it, and by how large all groups would be."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from engine.accumulators.aggregate_functions import result_schema
from engine.aggregate import grouping_phase
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.aggregate_workspace import InputForm
from engine.aggregate.grouping_phase import GroupingPhase
from engine.aggregate.hash_aggregate import HashAggregate
from engine.partitions.recursion import Recursion
from tests.aggregate.group_oracle import input_table, make_calls

GROUP_BYTES = 40
PAGE_BYTES = 1000
ROWS = 5000


class _Table:
    """Groups of numbers."""

    store_count = 8

    def __init__(self) -> None:
        self.keys: set[int] = set()

    @property
    def group_count(self) -> int:
        return len(self.keys)

    groups_made = group_count

    def open(self, key_columns: list[int], batch: list[int], binding: object) -> list[int]:
        return batch

    def store_sizes(self) -> list[tuple[int, int]]:
        return [(GROUP_BYTES * len(self.keys), len(self.keys))]


class _Insert:
    """A batch, which is a list of numbers, on its way into a table that is never full."""

    def __init__(self, table: _Table, batch: list[int]) -> None:
        self._table, self._batch = table, batch
        self.position = 0

    def until_full(self) -> bool:
        self._table.keys.update(self._batch)
        self.position = len(self._batch)
        return True


def rows_taken(keys: list[int], groups_that_fit: int, *, watches_caches: bool = False) -> int:
    """Return how many rows go into a table before it is of no use."""
    table = _Table()
    work: Any = SimpleNamespace(
        table=table,
        files=None,
        pool=SimpleNamespace(page_limit=groups_that_fit * GROUP_BYTES // PAGE_BYTES, page_size=PAGE_BYTES),
        spec=SimpleNamespace(force_spill=False),
        partition_count=8,
        recursion=Recursion(),
    )
    phase, form = GroupingPhase(work, 0, watches_caches), InputForm([], cast("Any", None))
    for start in range(0, len(keys), 10):
        batch: Any = keys[start : start + 10]
        phase.add(batch, form)
        if phase.is_of_no_use:
            return start + len(batch)
    return len(keys)


@pytest.fixture(autouse=True)
def caches_of_few_groups(monkeypatch):
    monkeypatch.setattr(grouping_phase, "CACHED_GROUPS", 64)


@pytest.fixture(autouse=True)
def lists_of_numbers(request, monkeypatch):
    if "workshop" not in request.fixturenames:
        monkeypatch.setattr(grouping_phase, "TableInsert", _Insert)


def drawn(keys: int) -> list[int]:
    chance = random.Random(keys)
    return [chance.randrange(keys) for _ in range(ROWS)]


def test_keys_that_are_each_their_own_hand_over_when_they_outgrow_the_caches():
    assert rows_taken(list(range(ROWS)), 1000) <= 80


@pytest.mark.parametrize("keys", [5000, 20_000])
def test_groups_that_would_not_fit_hand_over_when_they_outgrow_the_caches(keys):
    assert rows_taken(drawn(keys), 1000) <= 80


@pytest.mark.parametrize("keys", [50, 300, 1000])
def test_groups_that_fit_stay(keys):
    assert rows_taken(drawn(keys), 4 * keys) == ROWS


def test_groups_whose_rows_come_together_stay_while_they_meet():
    assert rows_taken([row // 4 for row in range(ROWS)], 500) == ROWS


def test_states_watch_the_caches_whatever_fits():
    assert rows_taken(drawn(1000), 4000, watches_caches=True) <= 80


@pytest.mark.parametrize(
    ("value", "helpers", "state"),
    [(7, None, "GROUPING"), ("seven", None, "PARTITIONED"), (7, SimpleNamespace(count=2), "PARTITIONED")],
)
def test_texts_and_threads_watch_the_caches_whatever_fits(workshop, value, helpers, state):
    keys, values = drawn(1000), pa.array([value] * ROWS)
    calls = make_calls(("max",))
    table = input_table(("key",), [pa.int64()], calls, [values.type], [keys, values.to_pylist()])
    output = result_schema([table.schema.field("key")], calls, [values.type])
    with workshop.operator(4000) as (pool, space):
        spec = AggregateSpec("single", table.schema, ("key",), calls, output)
        aggregate = HashAggregate(spec, pool, space, helpers=helpers)
        for batch in table.to_batches(100):
            assert not list(aggregate.add_batch(batch))
        assert aggregate.state.name == state
        found = [row["key"] for batch in aggregate.finish() for row in batch.to_pylist()]
        aggregate.close()
    assert sorted(found) == sorted(set(keys))
