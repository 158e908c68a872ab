"""Files of states that do not fit are read part by part: results, and how often rows are written."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.accumulators.aggregate_functions import argument_column
from engine.aggregate import file_passes
from engine.graph.expression import AggregateCall, ColumnRef
from engine.records.row_codec import RowCodec
from tests.aggregate.group_oracle import make_table, oracle, rows_of, single, two_phases

CALLS = (AggregateCall("max", ColumnRef("x"), "m"), AggregateCall("count_all", None, "n"))
#: bytes of a row of states with a number as key
STATE_BYTES = 80


def keys_of(case, rows):
    chance = np.random.default_rng(1)
    if case == "one row a group":
        return pa.array(chance.permutation(rows))
    if case == "ten rows a group":
        return pa.array(chance.integers(0, rows // 10, rows))
    if case == "wide keys":
        return pa.array([f"{number:0>70}" for number in chance.permutation(rows)])
    keys = chance.permutation(rows)
    keys[chance.random(rows) < 0.12] = 7
    return pa.array(keys)


@pytest.mark.thorough
@pytest.mark.parametrize("pages", [6, 12, 32])
@pytest.mark.parametrize("case", ["one row a group", "ten rows a group", "wide keys", "a heavy key"])
def test_states_of_a_hundred_times_the_memory_are_written_twice_at_most(workshop, pages, case):
    rows = 100 * pages * 4096 // (STATE_BYTES * (2 if case == "wide keys" else 1))
    keys = keys_of(case, rows)
    values = pa.array([f"value {index:0>20}" for index in range(rows)])
    table = pa.table({"key": keys, argument_column(0): values})
    final, operator, states = two_phases(workshop, pages, table, ("key",), CALLS, batch_rows=8192)
    codec = RowCodec(states.schema)
    taken = sum(len(codec.to_rows(batch)) for batch in states.to_batches())
    assert taken > 60 * pages * 4096
    # A table that is full leaves some groups behind whose first row comes again.
    assert 0.5 * taken < operator.spilled_bytes <= 2.02 * taken
    assert operator._grouping._work.space.spilled_bytes <= 2 * taken
    assert len(final) == pc.count_distinct(keys).as_py()
    expected = table.group_by("key").aggregate([(argument_column(0), "max"), ([], "count_all")])
    expected = expected.select(["key", f"{argument_column(0)}_max", "count_all"]).rename_columns(final.column_names)
    assert final.sort_by("key").combine_chunks() == expected.sort_by("key").combine_chunks()


@pytest.mark.parametrize("value_type", ["int64", "string"])
def test_keys_that_cannot_be_told_apart_are_left_to_a_frozen_table(workshop, monkeypatch, value_type):
    monkeypatch.setattr(file_passes, "PARTS_MAX", 1)
    monkeypatch.setattr(file_passes, "PASSES_CHEAP", 1000)
    table, calls = make_table("int64", value_type, 3000, 2500)
    result, operator = single(workshop, 6, table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert operator.spilled_bytes > 0


@pytest.mark.parametrize("force_spill", [False, True])
def test_the_passes_over_a_file_are_about_as_many_as_tables_that_it_fills(workshop, monkeypatch, force_spill):
    filled = []
    fill = file_passes.FilePasses._fill
    monkeypatch.setattr(file_passes.FilePasses, "_fill", lambda self, part: filled.append(part) or fill(self, part))
    table, calls = make_table("int64", "int64", 500 if force_spill else 6000, 5000)
    result, _ = single(workshop, 8, table, ("key",), calls, force_spill=force_spill)
    assert rows_of(result) == oracle(table, ("key",), calls)
    files = {part.file.file_number for part in filled}
    assert max(part.parts for part in filled) > 1
    # the tries included
    assert len(filled) < 24 * len(files)
