"""The loops around a function: all rows, in order, in batches that are not larger than they should be."""

from itertools import chain

import pyarrow as pa
import pytest

from engine.functions.function_error import BadOutputError
from engine.functions.row_appender import RowAppender
from engine.functions.row_loop import RowLoop, filter_rows
from engine.functions.row_reader import RowReader, RowStream

OUT = pa.schema([("x", pa.int64())])


def reader_of(count):
    return RowReader([pa.record_batch({"n": pa.array(range(count), pa.int64())})])


def all_batches(step, appender):
    found, more = [], True
    while more:
        more = step()
        if appender.rows:
            found.append(appender.finish().column(0).to_pylist())
    return found


@pytest.mark.parametrize("limit", [1, 3, 1000])
@pytest.mark.parametrize("shape", [list, tuple, iter, lambda values: (value for value in values), set])
def test_flat_map_gives_all_rows_in_batches_within_the_limit(limit, shape):
    appender = RowAppender(OUT, limit)
    loop = RowLoop(lambda row: shape([row.n] * (row.n % 4)), appender, "flat_map")
    reader = reader_of(20)
    found = all_batches(lambda: loop.flat_map(reader), appender)
    size = (lambda n: n % 4) if shape is not set else (lambda n: min(1, n % 4))
    assert list(chain(*found)) == [n for n in range(20) for _ in range(size(n))]
    assert max(map(len, found)) <= limit


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_map_goes_on_where_it_was(limit):
    appender = RowAppender(OUT, limit)
    loop, reader = RowLoop(lambda row: row.n, appender, "map"), reader_of(20)
    assert list(chain(*all_batches(lambda: loop.map(reader), appender))) == list(range(20))


@pytest.mark.parametrize("result", [None, 5, "text", b"bytes", {"x": 1}])
def test_what_is_no_iterable_of_rows_is_refused(result):
    loop = RowLoop(lambda row: result, RowAppender(OUT, 10), "flat_map")
    with pytest.raises(BadOutputError, match=f"flat_map must return an iterable of rows, not {type(result).__name__}"):
        loop.flat_map(reader_of(1))


def test_a_generator_in_hand_is_unwound_when_nobody_wants_its_rows():
    ended = []

    def endless(row):
        try:
            while True:
                yield (1,)
        finally:
            ended.append(row.n)

    loop = RowLoop(endless, RowAppender(OUT, 2), "flat_map")
    assert loop.flat_map(reader_of(3)) is True
    loop.stop()
    assert ended == [0]
    loop.stop()


def test_a_function_that_goes_on_behind_a_failed_input_fails():
    def failing():
        yield pa.record_batch({"n": [1]})
        raise OSError("gone")

    def careless(rows):
        while True:
            try:
                yield (next(rows).n,)
            except (OSError, StopIteration):
                return

    rows = RowStream(failing())
    with pytest.raises(OSError, match="gone"):
        RowLoop(careless, RowAppender(OUT, 10), "map_partition").run(iter([(rows,)]), rows)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_filter_keeps_what_the_function_says(count):
    assert filter_rows(lambda row: row.n % 3, reader_of(count)).to_pylist() == [n % 3 > 0 for n in range(count)]
