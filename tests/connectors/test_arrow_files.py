"""Arrow files of a job as a source: splits cover each batch once, in order, and statistics tell of all rows."""

import pyarrow as pa

from engine.connectors.arrow_files import arrow_files_source
from engine.connectors.arrow_reader import ArrowReader

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])


def written(folder, name, batches):
    with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        for start, count in batches:
            rows = {"k": list(range(start, start + count)), "s": ["x" * 1000] * count}
            writer.write_batch(pa.RecordBatch.from_pydict(rows, SCHEMA))


def test_splits_cover_all_batches_in_order(tmp_path):
    written(tmp_path, "part-00001.arrow", [(20_000, 1)])
    written(tmp_path, "part-00000.arrow", [(start, 1_000) for start in range(0, 20_000, 1_000)])
    written(tmp_path, "part-00002.arrow", [])
    spec, statistics = arrow_files_source(tmp_path, SCHEMA, "kept")
    assert len(spec.splits) > 3
    found = [value for batch in ArrowReader(spec, spec.splits) for value in batch.column("k").to_pylist()]
    assert found == list(range(20_001))
    assert (statistics.row_count, statistics.is_exact, statistics.origin) == (20_001, True, "kept")
    assert 900 < statistics.columns["s"].average_width_bytes < 1_100


def test_no_rows_are_no_splits(tmp_path):
    spec, statistics = arrow_files_source(tmp_path, SCHEMA, "kept")
    assert (spec.splits, statistics.row_count, statistics.columns) == ((), 0, {})
