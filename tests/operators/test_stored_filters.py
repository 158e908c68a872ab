"""Filters that producers of a build side store: keys of all rows, memory that is counted, and what is no filter."""

from types import SimpleNamespace

import msgspec
import pyarrow as pa
import pytest

from engine.errors import CorruptBlockError
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import KeyFilterOperator
from engine.graph.runtime_filter import FILTER_ROWS
from engine.memory.budget import Budget, Kind
from engine.operators import runtime_filters, stored_filters
from engine.operators.stored_filters import KeyFilters, read_stored_filters
from tests.operators.task_world import described

SCHEMA = pa.schema([("k", pa.int64()), ("wide", pa.string()), ("t", pa.string())])


@pytest.fixture(autouse=True)
def budget(monkeypatch):
    budget = Budget()
    monkeypatch.setattr(stored_filters, "process_budget", budget)
    monkeypatch.setattr(runtime_filters, "process_budget", budget)
    yield budget
    assert budget.held(Kind.ARROW) == 0


def rows(numbers):
    return pa.RecordBatch.from_pydict(
        {"k": numbers, "wide": ["x" * 1000] * len(numbers), "t": [f"t {number}" for number in numbers]}, SCHEMA
    )


def made(batches, rows_max=1_000_000, columns=("k", "t"), sharers=1, look=lambda: None):
    """Rows that an operator makes of batches."""
    found = []
    descriptor = described(KeyFilterOperator(9, columns, rows_max, sharers), SCHEMA)
    operator = KeyFilters(msgspec.structs.replace(descriptor, output_schema=FILTER_ROWS))
    operator.open(None, SimpleNamespace(process=found.append, is_satisfied=False))
    for batch in batches:
        operator.process(batch)
    look()
    operator.finish()
    operator.close()
    operator.close()
    assert all(batch.schema == to_arrow_schema(FILTER_ROWS) for batch in found)
    return found


def inputs(*producers):
    """An input with the rows of each producer."""
    return [SimpleNamespace(channels=producers, batches=lambda: (batch for rows in producers for batch in rows))]


def read(*producers):
    found = read_stored_filters(inputs(*producers))
    if found is None:
        return None
    try:
        return {place: known.mask(ASKED[place[1]]).array().to_pylist() for place, known in found.filters.items()}
    finally:
        found.close()


ASKED = [pa.array([0, 1, 2, 3, 500_000, None]), pa.array(["t 0", "t 1", "t 2", "t 3", "u", None])]


def test_a_source_has_the_keys_of_all_subtasks():
    both = read(made([rows([0]), rows([2, 2])]), made([rows([3])]))
    assert both == {(9, 0): [True, False, True, True, False, False], (9, 1): [True, False, True, True, False, False]}


def test_a_subtask_without_rows_has_a_filter_that_lets_nothing_pass():
    assert read(made([])) == {(9, 0): [False] * 6, (9, 1): [False] * 6}
    assert read(made([]), made([rows([1])]))[9, 0] == [False, True, False, False, False, False]


def test_one_subtask_without_a_filter_leaves_none():
    assert read(made([rows([0, 1])]), made([rows([2, 3])], rows_max=1)) is None


def test_too_many_rows_and_too_many_bytes_make_no_filter(monkeypatch):
    assert made([rows([0, 1]), rows([2])], rows_max=2) == []
    monkeypatch.setattr(stored_filters, "KEY_BYTES_MAX", 15)
    assert made([rows([0, 1])], columns=("k",)) == []


def test_without_memory_there_is_no_filter(budget):
    budget.set_limit(Kind.ARROW, 0)
    assert made([rows([0, 1])]) == []


def test_keys_are_counted_and_the_columns_beside_them_are_not_held(budget, monkeypatch):
    monkeypatch.setattr(stored_filters, "_PIECE_ROWS", 100)
    before = pa.total_allocated_bytes()
    seen = []

    def look():
        seen.append((budget.held(Kind.ARROW), pa.total_allocated_bytes() - before))

    batches = (rows(list(range(start, start + 50))).slice(10) for start in range(0, 5000, 50))
    assert made(batches, columns=("k",), look=look)
    (held, allocated) = seen[0]
    assert 8 * 3900 <= held <= 8 * 4000
    assert allocated < 4 * held


def test_what_is_no_filter_is_refused():
    for row in (b"", b"no stream of Arrow", b"\xff" * 40):
        batch = pa.RecordBatch.from_pydict({"filter": pa.array([row], pa.binary())})
        with pytest.raises(CorruptBlockError, match="a stored filter of a join"):
            read([batch])
