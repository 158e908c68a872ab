"""What a function's worker is sent: batches as large as it is quick."""

import time

import pyarrow as pa
import pytest

from engine.operators import python_operator
from engine.operators.python_operator import ROWS_AT_ONCE, ROWS_ENOUGH, PythonFunctionOperator
from engine.records.bounded_batches import BYTES_MIN, SmallBatches

SIZE = 4096


class Session:
    """Takes batches, ``seconds`` for each."""

    is_satisfied = False
    busy_us = opening_us = peak_bytes = 0

    def __init__(self, seconds):
        self.seconds, self.given = seconds, []

    def process(self, batch):
        time.sleep(self.seconds)
        self.given.append(batch)
        return iter(())

    def finish(self):
        return iter(())


class Output:
    is_satisfied = False


def sent(seconds, batches, kind="map"):
    """Return what a worker is sent of some batches."""
    operator = PythonFunctionOperator.__new__(PythonFunctionOperator)
    operator._session, operator._marker, operator._rows = Session(seconds), None, None
    operator._small = SmallBatches(1, rows_enough=ROWS_ENOUGH) if kind in python_operator.ROW_KINDS else None
    operator.output = Output()
    operator.context = type("Context", (), {"check_cancelled": lambda self: None})()
    for batch in batches:
        operator.process(batch)
    given = operator._session.given
    for batch in operator._small.rest() if operator._small else ():
        operator._send(batch)
    assert pa.Table.from_batches(given).column(0).to_pylist() == list(range(sum(batch.num_rows for batch in batches)))
    return [batch.num_rows for batch in given]


def batches_of(count, text=""):
    for start in range(0, count * SIZE, SIZE):
        columns = {"n": range(start, start + SIZE)}
        yield pa.record_batch({**columns, "t": [text] * SIZE} if text else columns)


def test_a_quick_function_is_sent_more_at_a_time():
    found = sent(0, list(batches_of(40)))
    assert found[0] == SIZE
    assert max(found) == ROWS_ENOUGH
    assert len(found) <= 10


def test_a_slow_one_is_sent_what_comes():
    assert set(sent(2 * python_operator.LONG_S, list(batches_of(12)))) == {SIZE}


def test_wide_rows_are_sent_as_they_come():
    assert set(sent(0, list(batches_of(8, "x" * (BYTES_MIN // SIZE))))) == {SIZE}


@pytest.mark.parametrize("kind", ["map_batches:arrow", "column:scalar", "partition"])
def test_who_sees_batches_is_sent_them_as_they_come(kind):
    assert set(sent(0, list(batches_of(8)), kind)) == {SIZE}


@pytest.mark.parametrize("kind", ["map", "map_batches"])
def test_a_very_long_batch_is_sent_in_parts(kind):
    batch = pa.record_batch({"n": range(2 * ROWS_AT_ONCE + 3)})
    assert sent(0, [batch], kind) == [ROWS_AT_ONCE, ROWS_AT_ONCE, 3]
