"""Columns that are decoded here have the values that pyarrow reads: types, nulls, encodings, codecs, masks, damage."""

import contextlib
import datetime
import functools
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine.parquet.column_streams import Beside
from engine.parquet.open_file import OpenFile
from engine.records.plain_types import plain_type
from engine.records.side_by_side import SideBySide

ROWS = 9_000
RANDOM = random.Random(7)


def _column(rnd, make, distinct, data_type, null_share):
    values = [make(rnd) for _ in range(distinct)] if distinct else None
    rows = [rnd.choice(values) if values else make(rnd) for _ in range(ROWS)]
    return pa.array([None if rnd.random() < null_share else row for row in rows], data_type)


def _text(rnd):
    return "".join(rnd.choice("abcdeé") for _ in range(rnd.choice((0, 1, 5, 31, 32, 33, 70))))


DAY = datetime.date(2000, 1, 1)
MAKERS = {
    pa.bool_(): lambda rnd: rnd.random() < 0.3,
    pa.int8(): lambda rnd: rnd.randint(-128, 127),
    pa.int16(): lambda rnd: rnd.randint(-(2**15), 2**15 - 1),
    pa.int32(): lambda rnd: rnd.randint(-(2**31), 2**31 - 1),
    pa.int64(): lambda rnd: rnd.randint(-(2**63), 2**63 - 1),
    pa.uint8(): lambda rnd: rnd.randint(0, 255),
    pa.uint16(): lambda rnd: rnd.randint(0, 2**16 - 1),
    pa.uint32(): lambda rnd: rnd.randint(0, 2**32 - 1),
    pa.uint64(): lambda rnd: rnd.randint(0, 2**64 - 1),
    pa.float32(): lambda rnd: float(rnd.randint(-1000, 1000)) / 4,
    pa.float64(): lambda rnd: rnd.gauss(0, 1),
    pa.date32(): lambda rnd: DAY + datetime.timedelta(rnd.randint(-3000, 3000)),
    pa.time32("ms"): lambda rnd: rnd.randint(0, 86_399_999),
    pa.time64("us"): lambda rnd: rnd.randint(0, 86_399_999_999),
    pa.time64("ns"): lambda rnd: rnd.randint(0, 86_399_999_999_999),
    pa.timestamp("ms"): lambda rnd: rnd.randint(-(10**12), 10**12),
    pa.timestamp("us", "UTC"): lambda rnd: rnd.randint(-(10**15), 10**15),
    pa.timestamp("ns"): lambda rnd: rnd.randint(-(10**18), 10**18),
    pa.decimal128(7, 2): lambda rnd: Decimal(rnd.randint(-(10**7) + 1, 10**7 - 1)).scaleb(-2),
    pa.decimal128(18, 4): lambda rnd: Decimal(rnd.randint(-(10**18) + 1, 10**18 - 1)).scaleb(-4),
    pa.decimal128(38, 3): lambda rnd: Decimal(rnd.randint(-(10**37), 10**37)).scaleb(-3),
    pa.string(): _text,
    pa.large_string(): _text,
    pa.binary(): lambda rnd: rnd.randbytes(rnd.randint(0, 40)),
    pa.binary(5): lambda rnd: rnd.randbytes(5),
}


@functools.cache
def all_columns():
    """Return a table of all types, with few and many values and nulls; not before a test asks for it."""
    rnd = random.Random(7)
    columns = {}
    for data_type, make in MAKERS.items():
        for distinct, null_share in ((0, 0.0), (30, 0.0), (0, 0.2), (30, 0.9)):
            columns[f"{data_type} {distinct} {null_share}"] = _column(rnd, make, distinct, data_type, null_share)
    return pa.table(columns)


def written(path, table=None, **options):
    """Write a table, all columns without one, with small pages; dictionaries that are given up in the middle."""
    options = {"data_page_size": 4096, "write_batch_size": 256, "dictionary_pagesize_limit": 8192, **options}
    pq.write_table(all_columns() if table is None else table, path, row_group_size=ROWS, **options)
    return str(path)


def opened(path, columns=None):
    names = columns or pq.read_schema(path).names
    return OpenFile(str(path), names), list(names)


def left_to_pyarrow(file, names):
    return [name for name in names if file._stored(0, name) is None]


def read(path, rows, mask=None, columns=None, skipped=()):
    """Read a row group in batches; of those that are skipped there are no rows."""
    file, names = opened(path, columns)
    try:
        stream = file.columns(0, names, rows)
        batches, start = [], 0
        while start < file.row_count(0):
            if len(batches) in skipped:
                stream.skip()
                batches.append(None)
            else:
                batches.append(stream.read(None if mask is None else mask.slice(start, rows)))
            start += rows
        assert stream.read() is None
        return [batch for batch in batches if batch is not None]
    finally:
        file.close()


def assert_same(batches, expected):
    found = pa.Table.from_batches(batches)
    found.validate(full=True)
    for name in expected.column_names:
        values, wanted = found.column(name), expected.column(name)
        if values.type != wanted.type:  # numbers of texts; Arrow forgets how large they were
            values = pc.cast(pc.cast(values, plain_type(values.type)), wanted.type)
        assert values.equals(wanted), name


def masks():
    yield "none", [False] * ROWS
    for share in (0.001, 0.3, 0.97):
        yield str(share), [RANDOM.random() < share for _ in range(ROWS)]
    yield "clustered", [3000 <= row < 3333 for row in range(ROWS)]
    yield "with nulls", [RANDOM.choice((True, False, None)) for _ in range(ROWS)]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip", "lz4", "brotli"])
def test_all_types_of_every_codec_are_as_arrow_reads_them(tmp_path, codec, version):
    path = written(tmp_path / "t.parquet", compression=codec, data_page_version=version)
    file, names = opened(path)
    # Runs of bools are for pages of the new version; of the rest nothing is left to pyarrow.
    assert not left_to_pyarrow(file, names)
    file.close()
    assert_same(read(path, 1000), all_columns())
    assert_same(read(path, 4096), all_columns())


@pytest.mark.parametrize(("name", "mask"), list(masks()), ids=lambda value: value if isinstance(value, str) else "")
def test_rows_of_a_mask_are_those_that_are_left(tmp_path, name, mask):
    mask = pa.array(mask, pa.bool_())
    expected = all_columns().filter(mask)
    for options in ({}, {"use_dictionary": False, "compression": "none"}, {"data_page_size": 1 << 20}):
        path = written(tmp_path / "t.parquet", **options)
        for rows in (700, ROWS):
            assert_same(read(path, rows, mask), expected)


@pytest.mark.parametrize(("name", "mask"), [*masks(), ("all", [True] * ROWS)])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_values_that_are_the_same_for_many_rows_are_theirs(tmp_path, name, mask, version):
    rnd, mask, columns = random.Random(7), pa.array(mask, pa.bool_()), {}
    for data_type, make in MAKERS.items():
        values = [make(rnd) for _ in range(8)]
        for nulls in ((), range(0, ROWS, 3), range(1200, 5000)):
            rows = [values[row // 1150] for row in range(ROWS)]
            for row in nulls:
                rows[row] = None
            columns[f"{data_type} {nulls}"] = pa.array(rows, data_type)
    table = pa.table(columns)
    path = written(tmp_path / "t.parquet", table, data_page_version=version, data_page_size=1 << 20)
    for rows in (700, ROWS):
        assert_same(read(path, rows, mask), table.filter(mask))


@pytest.mark.parametrize(("name", "mask"), [*masks(), ("all", [True] * ROWS)])
def test_rows_come_beside_those_of_a_batch_that_are_kept_in_one_batch(tmp_path, name, mask):
    table, mask = all_columns(), pa.array(mask)
    file, names = opened(written(tmp_path / "beside.parquet"))
    batch = table.select(names[::2]).combine_chunks().to_batches()[0]
    wanted = [*reversed(names[:8]), *names[8:]]
    try:
        for beside in (Beside(SideBySide(wanted), batch, mask), Beside(SideBySide(wanted), batch.filter(mask), None)):
            stream = file.columns(0, names[1::2], ROWS)
            found = stream.read_beside(mask, beside)
            assert found.schema.names == wanted
            assert_same([found], table.select(wanted).filter(mask))
            assert stream.read_beside(None, beside) is None
            if found.num_rows < ROWS:
                with pytest.raises(pa.ArrowInvalid, match="same number of rows"):
                    file.columns(0, names[1::2], ROWS).read_beside(None, beside)
    finally:
        file.close()


def test_chunks_that_were_found_are_those_of_their_form(tmp_path):
    table = pa.table({"d": all_columns()["decimal128(7, 2) 0 0.2"]})
    path = written(tmp_path / "again.parquet", table, store_decimal_as_integer=True)
    for is_narrow in (False, True, False):
        file = OpenFile(path, ["d"])
        if is_narrow:
            file.narrow(["d"])
        with contextlib.closing(file):
            found = [file.columns(0, ["d"], ROWS).read() for _ in range(2)]
        assert [pa.types.is_decimal64(batch.schema.field("d").type) for batch in found] == [is_narrow] * 2
        assert found[1].column("d").cast(pa.decimal128(7, 2)).equals(table["d"].combine_chunks())


def test_rows_that_are_skipped_are_not_there(tmp_path):
    path = written(tmp_path / "t.parquet")
    for skipped in ((0,), (1, 2, 3), (0, 5, 8)):
        kept = pa.array([row // 1000 not in skipped for row in range(ROWS)])
        assert_same(read(path, 1000, skipped=skipped), all_columns().filter(kept))


def test_pages_of_which_no_row_is_wanted_are_not_opened(tmp_path):
    """Pages in the middle are damaged; who does not want their rows does not see it."""
    table = pa.table({"n": pa.array(range(ROWS), pa.int64())})
    path = written(tmp_path / "t.parquet", table, compression="none", use_dictionary=False, write_page_checksum=True)
    data = bytearray((tmp_path / "t.parquet").read_bytes())
    place = data.index((4000).to_bytes(8, "little") + (4001).to_bytes(8, "little"))
    data[place] ^= 1
    (tmp_path / "t.parquet").write_bytes(data)
    mask = pa.array([row < 1000 or row > 8000 for row in range(ROWS)])
    assert_same(read(path, 2000, mask), table.filter(mask))
    with pytest.raises(pa.ArrowInvalid, match=r"column 'n': the page at byte \d+ is damaged: its checksum"):
        read(path, 2000)


def test_texts_come_as_numbers_of_those_of_their_dictionary(tmp_path):
    texts = pa.table(
        {
            "word": [f"word {RANDOM.randrange(50)}" for _ in range(ROWS)],
            "maybe": [RANDOM.choice((None, "x", "y")) for _ in range(ROWS)],
        }
    )
    path = written(tmp_path / "t.parquet", texts)
    file, _ = opened(path)
    assert file.coded == {"word", "maybe"}
    file.close()
    mask = pa.array([RANDOM.random() < 0.2 for _ in range(ROWS)])
    for batch in read(path, 800, mask):
        assert all(pa.types.is_dictionary(column.type) for column in batch.columns)
    assert_same(read(path, 800, mask), texts.filter(mask))


def test_a_dictionary_that_was_given_up_late_goes_on_with_further_texts(tmp_path):
    rows = ["a", "b"] * 4000 + [f"c{row}" for row in range(400)]
    table = pa.table({"word": rows})
    path = str(tmp_path / "t.parquet")
    pq.write_table(table, path, data_page_size=1000, write_batch_size=100, dictionary_pagesize_limit=200)
    file, names = opened(path)
    if file.coded:  # else it is read as plain texts, which other tests look at
        stream = file.columns(0, names, 1000)
        found = [stream.read() for _ in range(9)]
        assert_same(found, table)
    file.close()


def test_columns_that_are_not_known_here_come_from_arrow_beside_the_others(tmp_path):
    table = pa.table(
        {
            "list": [[row] * (row % 3) for row in range(ROWS)],
            "n": range(ROWS),
            "split": pa.array(map(float, range(ROWS))),
            "text": [f"text {row}" for row in range(ROWS)],
        }
    )
    path = written(
        tmp_path / "t.parquet",
        table,
        use_dictionary=["n"],
        column_encoding={"split": "BYTE_STREAM_SPLIT", "text": "DELTA_BYTE_ARRAY"},
    )
    file, names = opened(path)
    assert left_to_pyarrow(file, names) == [name for name in names if name != "n"]
    file.close()
    mask = pa.array([row % 7 == 0 for row in range(ROWS)])
    assert_same(read(path, 1000, mask), table.filter(mask))
    assert [batch.schema.names for batch in read(path, 5000)] == [names, names]


def integers():
    """Those of the columns that are stored as integers, without dictionaries of few values."""
    names = [name for name in all_columns().column_names if not name.startswith(("bool", "float", "double", "string"))]
    return all_columns().select([name for name in names if "binary" not in name and "large" not in name])


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_integers_that_are_stored_as_differences_are_as_arrow_reads_them(tmp_path, codec, version):
    table = integers()
    path = written(
        tmp_path / "t.parquet",
        table,
        compression=codec,
        data_page_version=version,
        use_dictionary=False,
        store_decimal_as_integer=True,
        column_encoding={name: "DELTA_BINARY_PACKED" for name in table.column_names if "(38, 3)" not in name},
    )
    file, names = opened(path)
    encodings = {name: file.footer.row_group(0).column(index).encodings for index, name in enumerate(names)}
    assert sum("DELTA_BINARY_PACKED" in found for found in encodings.values()) == len(names) - 4
    assert not left_to_pyarrow(file, names)
    file.close()
    assert_same(read(path, 1000), table)
    for _, mask in masks():
        kept = pa.array(mask, pa.bool_())
        assert_same(read(path, 1700, kept), table.filter(kept))
    kept = pa.array([row // 1000 not in (0, 4, 5) for row in range(ROWS)])
    assert_same(read(path, 1000, skipped=(0, 4, 5)), table.filter(kept))


def test_damaged_differences_are_errors_or_other_values_and_do_no_harm(tmp_path):
    names = [name for name in integers().column_names if name.startswith(("int32 ", "int64 ", "uint8 "))]
    table, path = all_columns().select(names), tmp_path / "t.parquet"
    encodings = dict.fromkeys(names, "DELTA_BINARY_PACKED")
    written(path, table, use_dictionary=False, column_encoding=encodings, compression="none")
    sound = path.read_bytes()
    end = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    told = 0
    for _ in range(300):
        damaged = bytearray(sound)
        damaged[RANDOM.randrange(4, end)] ^= 1 << RANDOM.randrange(8)
        path.write_bytes(damaged)
        try:
            assert pa.Table.from_batches(read(str(path), 1000)).num_rows == ROWS
        except (pa.ArrowInvalid, OSError):
            told += 1
    assert told


def test_times_of_96_bits_and_columns_of_one_name_are_left_to_arrow(tmp_path):
    table = pa.table({"t": pa.array([datetime.datetime(2020, 1, 1)] * 10, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    file, names = opened(str(tmp_path / "t.parquet"))
    assert left_to_pyarrow(file, names) == names
    assert file.columns(0, names, 10).read().column(0).to_pylist() == table.column(0).to_pylist()
    file.close()


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("has_checksum", [False, True])
def test_flipped_bits_are_errors_or_other_values_and_do_no_harm(tmp_path, codec, has_checksum):
    names = [
        name
        for name in all_columns().column_names
        if name.startswith(("int64 ", "string ", "bool ", "decimal128(7, 2) "))
    ]
    path = tmp_path / "t.parquet"
    written(path, all_columns().select(names), compression=codec, write_page_checksum=has_checksum)
    sound = path.read_bytes()
    end = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    told = 0
    for _ in range(75):
        damaged = bytearray(sound)
        place = RANDOM.randrange(4, end)
        damaged[place] ^= 1 << RANDOM.randrange(8)
        path.write_bytes(damaged)
        try:
            found = pa.Table.from_batches(read(str(path), 1000))
        except (pa.ArrowInvalid, OSError):
            told += 1
        else:
            assert found.num_rows == ROWS
            if has_checksum:
                # What is not told was in a header, in statistics that nobody reads.
                assert_same(found.to_batches(), all_columns().select(names))
    assert told > (50 if has_checksum else 1)


def test_a_file_that_ends_early_is_an_error(tmp_path):
    path = tmp_path / "t.parquet"
    written(path, all_columns().select(all_columns().column_names[:4]))
    file, names = opened(str(path))
    stream = file.columns(0, names, 1000)
    path.open("r+b").truncate(300)
    with pytest.raises(pa.ArrowInvalid, match="there are rows beyond it"):
        for _ in range(9):
            stream.read()
    file.close()


def bytes_asked_of_the_system():
    return int(Path("/proc/self/io").read_text().split("rchar:")[1].split()[0])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not count what is read")
@pytest.mark.parametrize("kept", ["all", "none of the middle"])
def test_of_large_pages_no_byte_is_read_twice_and_those_passed_over_hardly(tmp_path, kept):
    rows, values = 400_000, random.Random(3)
    table = pa.table({"v": [values.getrandbits(62) for _ in range(rows)]})
    path = tmp_path / "large.parquet"
    pq.write_table(table, path, row_group_size=rows, data_page_size=200_000, use_dictionary=False, compression="snappy")
    middle = pa.array([kept == "all" or not 40_000 <= row < 360_000 for row in range(rows)])
    file, names = opened(path)
    try:
        stream = file.columns(0, names, rows)
        before = bytes_asked_of_the_system()
        batch = stream.read(middle)
        asked = bytes_asked_of_the_system() - before
    finally:
        file.close()
    assert_same([batch], table.filter(middle))
    size = path.stat().st_size
    assert asked < (1.02 * size if kept == "all" else 0.4 * size)
