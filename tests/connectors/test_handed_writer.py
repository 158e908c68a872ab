"""Parts for a client in the same process: small ones in memory, and the rest of large ones in a file."""

import pyarrow as pa
import pytest

from engine.commit.handed_target import HandedResult
from engine.connectors import handed_writer
from engine.connectors.handed_writer import HandedWriter, handed_batches
from engine.connectors.sink_writer import finished

BATCH = pa.record_batch({"n": pa.array(range(1000), pa.int64()), "t": ["x" * 9, None] * 500})


@pytest.fixture
def result(tmp_path):
    with HandedResult(str(tmp_path / "result-1")) as result:
        yield result


def write(tmp_path, batches):
    writer = HandedWriter(BATCH.schema, str(tmp_path / "result-1" / "part"))
    for batch in batches:
        writer.write(batch)
    return writer


@pytest.mark.parametrize("head_bytes_max", [0, 30_000, 1 << 20])
def test_a_part_has_its_rows_in_order_wherever_they_are(tmp_path, monkeypatch, result, head_bytes_max):
    monkeypatch.setattr(handed_writer, "HEAD_BYTES_MAX", head_bytes_max)
    writer = write(tmp_path, [BATCH, BATCH.slice(3, 5), BATCH])
    rows, size_bytes, statistics = finished(writer)
    part = result.staged["part"]
    assert pa.Table.from_batches(handed_batches(part)) == pa.Table.from_batches([BATCH, BATCH.slice(3, 5), BATCH])
    assert (rows, statistics) == (2005, "") and size_bytes >= 2005 * 8
    assert bool(part.file) == (head_bytes_max < 1 << 20)
    assert (tmp_path / "result-1").exists() == bool(part.file)
    assert part.head.size <= head_bytes_max + 1000, "beside rows it has a schema and an end"


def test_a_part_keeps_no_memory_of_what_its_rows_are_a_view_of(tmp_path, result):
    finished(write(tmp_path, [BATCH.slice(3, 5)]))
    assert result.staged["part"].head.size < 2000


def test_an_attempt_without_rows_has_a_part_and_one_that_fails_has_none(tmp_path, monkeypatch, result):
    finished(write(tmp_path, []))
    assert list(handed_batches(result.staged.pop("part"))) == []
    monkeypatch.setattr(handed_writer, "HEAD_BYTES_MAX", 0)
    writer = write(tmp_path, [BATCH])
    writer.abort()
    assert not result.staged and list((tmp_path / "result-1").iterdir()) == []
