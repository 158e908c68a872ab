"""Footers with damaged bytes: an error in every case, where pyarrow alone ends the process."""

import contextlib
import os
import random
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.errors import EngineError
from engine.parquet.footer_check import check_footer
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source

TABLE = pa.table(
    {
        "a": range(100),
        "é": [f"x{row % 7}" for row in range(100)],
        "d": [float(row) for row in range(100)],
        "nested": [{"list": [{"x": row}], "y": None} for row in range(100)],
    }
)


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "sound.parquet"
    pq.write_table(TABLE, path, compression="snappy", row_group_size=50, write_page_index=True, store_schema=False)
    return path.read_bytes()


def footer_of(data):
    (size,) = struct.unpack("<i", data[-8:-4])
    return data[-8 - size : -8]


def rows_of(path):
    spec, _, _ = parquet_source(str(path))
    return sum(batch.num_rows for batch in ParquetReader(spec, spec.splits))


def damaged_beyond_reading(path, damages):
    """Read a damaged file after the other in a process of its own; return the damage at which that ended, or None.

    Each must end with rows, or with an error that is expected of it. A process for each would take longer to fork from
    a run of many tests than to read.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            for data in damages.values():
                path.write_bytes(data)
                with contextlib.suppress(EngineError, pa.ArrowException, OSError):
                    rows_of(path)
                os.write(writing, b".")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as read:
        ended = len(read.read())
    os.waitpid(child, 0)
    return dict(enumerate(damages)).get(ended)


def test_a_codec_that_is_none_is_an_error_with_its_place(tmp_path, sound):
    codec = b"\x19\x18\x01a\x15\x02"  # path a, codec 1
    assert sound.count(codec) == 2
    path = tmp_path / "t.parquet"
    path.write_bytes(sound.replace(codec, codec[:-1] + b"\x20", 1))
    with pytest.raises(EngineError, match="its footer is damaged: row group 0, column 0: its codec 16 is none"):
        rows_of(path)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_byte_of_a_footer_is_damaged_the_process_goes_on(tmp_path, sound, seed):
    choice = random.Random(seed)
    begin = len(sound) - 8 - len(footer_of(sound))
    damages = {}
    for _ in range(100):
        place = choice.randrange(begin, len(sound) - 8)
        value = choice.choice([choice.randrange(256), sound[place] ^ (1 << choice.randrange(8))])
        damages[place - begin, value] = sound[:place] + bytes([value]) + sound[place + 1 :]
    assert damaged_beyond_reading(tmp_path / "t.parquet", damages) is None


def test_footers_of_all_writers_are_sound(tmp_path, sound):
    check_footer(footer_of(sound))
    for version in ("1.0", "2.6"):
        for table in (TABLE, TABLE.slice(0, 0), TABLE.select([])):
            path = tmp_path / "t.parquet"
            pq.write_table(table, path, version=version, write_page_index=True)
            check_footer(footer_of(path.read_bytes()))


def test_a_footer_that_is_cut_off_is_left_to_pyarrow(sound):
    footer = footer_of(sound)
    for size in range(len(footer)):
        check_footer(footer[:size])
