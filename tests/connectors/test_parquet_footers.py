"""Footers of Parquet files are shared by those that read a file at the same time, and by nobody else."""

import pyarrow as pa
import pyarrow.parquet as pq

from engine.connectors.parquet_footers import open_shared


def test_readers_of_a_file_share_its_footer_while_it_is_open(tmp_path):
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"a": range(10)}), path)
    first, footer = open_shared(path, 1 << 16)
    second, shared = open_shared(path, 1 << 16)
    assert shared is footer
    first.close()
    assert second.read().column("a").to_pylist() == list(range(10))
    second.close()
    del first, second, footer, shared
    third, footer = open_shared(path, 1 << 16)
    assert footer.num_rows == 10
    third.close()


def test_a_file_that_was_replaced_has_a_footer_of_its_own(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": range(10)}), path)
    first, old = open_shared(str(path), 1 << 16)
    pq.write_table(pa.table({"a": range(20)}), tmp_path / "new.parquet")
    (tmp_path / "new.parquet").replace(path)
    second, new = open_shared(str(path), 1 << 16)
    assert (old.num_rows, new.num_rows) == (10, 20)
    assert (first.read().num_rows, second.read().num_rows) == (10, 20)
    first.close()
    second.close()
