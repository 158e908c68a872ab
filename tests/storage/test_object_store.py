"""Objects of a store, read from a real server of S3: names, ranges, streams, errors, and all formats."""

import errno
import functools
import http.server
import io
import os
import random
import sys
import threading
from datetime import UTC, datetime

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.connectors.text_source import text_source
from engine.csv.options import CsvOptions
from engine.csv.source import csv_source
from engine.errors import PlanError
from engine.files.paths import expand_paths
from engine.formats.registry import open_source
from engine.parquet.fetched_chunks import ChunkFile
from engine.parquet.open_file import OpenFile
from engine.parquet.source import parquet_source
from engine.storage.file_systems import LOCAL, file_system_of
from engine.storage.store_client import place_of, use_store_settings
from engine.storage.store_files import StoreRangeFile, joined_ranges, version_of
from tests.files.test_native_files import SOURCES, TABLE, WRITERS, written
from tests.storage.moto_server import KEYS

CONTENT = random.Random(7).randbytes(700_000)


@pytest.fixture
def files():
    return file_system_of("s3://data")


def rows_of(spec):
    reader = open_source(spec, spec.splits)
    batches = list(reader)
    reader.close()
    return pa.Table.from_batches(batches).to_pylist()


def requests_of(monkeypatch):
    """Return the ranges that are asked for, from now on."""
    asked, get, of_tail = [], StoreRangeFile._buffer, StoreRangeFile.of_tail
    monkeypatch.setattr(StoreRangeFile, "_buffer", lambda file, *part: asked.append(part) or get(file, *part))
    monkeypatch.setattr(StoreRangeFile, "of_tail", lambda path: asked.append((0, 0)) or of_tail(path))
    return asked


def test_names_are_found_one_by_one_by_prefix_and_by_glob(store, files):
    for key in ("names/a.csv", "names/year=1/b.csv", "names/year=2/c.csv", "names/.hidden"):
        store.put(key, b"1")
    status = files.status("s3://data/names/a.csv")
    assert (status.size_bytes, status.is_file, status.is_folder) == (1, True, False)
    assert files.status("s3://data/names").is_folder
    assert files.status("s3://data").is_folder
    assert files.find("s3://data/name") is None, "a prefix ends at a slash"
    found = {each.name: each for each in files.entries("s3://data/names")}
    assert sorted(found) == [".hidden", "a.csv", "year=1", "year=2"]
    assert (found["year=1"].path, found["year=1"].is_folder) == ("s3://data/names/year=1", True)
    assert (found["a.csv"].size_bytes, found["a.csv"].is_file) == (1, True)
    assert sorted(files.matching("s3://data/names/*")) == [
        f"s3://data/names/{x}" for x in ("a.csv", "year=1", "year=2")
    ]
    assert sorted(files.matching("s3://data/n*/year=[2-9]/*.csv")) == ["s3://data/names/year=2/c.csv"]
    assert next(place for place, _, _ in files.walk("s3://data/names")) == "s3://data/names"
    assert expand_paths("s3://data/names/**", "read_csv") == (
        "s3://data/names/a.csv",
        "s3://data/names/year=1/b.csv",
        "s3://data/names/year=2/c.csv",
    )


def test_ranges_and_streams_give_the_bytes_of_the_object(store, files, monkeypatch):
    path = store.put("bytes", CONTENT)
    asked = requests_of(monkeypatch)
    with files.open_ranges(path) as file:
        assert file.read_at(5, 10) == CONTENT[5:15]
        assert file.read_at(len(CONTENT) - 8, 100) == CONTENT[-8:]
        assert file.read_at(len(CONTENT) - 4000, 4000) == CONTENT[-4000:]
        assert file.read_at(len(CONTENT), 5) == b""
        assert len(asked) == 2, "the end of an object is asked for once"
        parts = {at: bytes(part) for at, part in file.read_ranges([(650_000, 650_010), (0, 10), (20, 30)])}
        assert parts == {0: CONTENT[:30], 650_000: CONTENT[650_000:650_010]}
    for is_buffered in (False, True):
        with files.open_stream(path, is_buffered=is_buffered) as stream:
            assert stream.read() == CONTENT
            assert stream.seek(-10, os.SEEK_END) == len(CONTENT) - 10
            assert (stream.read(4), stream.seek(3), stream.read(3)) == (CONTENT[-10:-6], 3, CONTENT[3:6])
    with files.open_stream(path) as stream, pytest.raises(ValueError, match="before its beginning"):
        stream.seek(-1)
    assert files.read(path) == CONTENT


@pytest.mark.parametrize(
    ("ranges", "requests"),
    [
        ([(0, 100), (100, 200), (50, 60)], [(0, 200)]),
        ([(0, 1_000_000), (1_040_000, 2_000_000), (2_170_000, 3_000_000)], [(0, 2_000_000), (2_170_000, 3_000_000)]),
        ([(0, 10), (9_000, 9_010), (90_000, 90_010)], [(0, 9_010), (90_000, 90_010)]),
        ([(7, 7)], []),
    ],
)
def test_ranges_are_joined_as_long_as_little_is_read_between_them(ranges, requests):
    assert joined_ranges(ranges) == requests


def test_an_object_that_is_replaced_while_it_is_read_is_an_error(store, files):
    path = store.put("replaced", CONTENT)
    with files.open_ranges(path) as file:
        store.put("replaced", CONTENT[::-1])
        with pytest.raises(OSError, match=r"replaced meanwhile.*run the job again") as caught:
            file.read_at(0, 10)
    assert (caught.value.errno, caught.value.filename) == (errno.ESTALE, path)


def test_a_tag_has_quotes_whether_a_listing_has_them_or_not():
    meta = {"size": 1, "last_modified": datetime.now(UTC)}
    assert [version_of({**meta, "e_tag": tag})[0] for tag in ("0x1", '"0x1"', 'W/"1"', None)] == [
        '"0x1"',
        '"0x1"',
        'W/"1"',
        None,
    ]


def test_what_is_wrong_is_told_with_the_path_and_what_to_do(store, files):
    with pytest.raises(FileNotFoundError) as missing:
        files.status("s3://data/nothing")
    assert missing.value.filename == "s3://data/nothing"
    with pytest.raises(OSError, match=r"no such bucket \(NoSuchBucket, request .*look at its name.*s3://nowhere/a"):
        files.status("s3://nowhere/a")
    with pytest.raises(PlanError, match="a bucket is missing"):
        files.status("s3:///a")
    with pytest.raises(PlanError, match="do not belong into a path") as shown:
        place_of("https://user:hush@host/a")
    assert "hush" not in str(shown.value)
    path = store.put("locked", b"1")
    with store.checked_keys(), pytest.raises(PermissionError, match="set AWS_ACCESS_KEY_ID and") as denied:
        files.read(path)
    assert path in str(denied.value)
    assert KEYS["secret_access_key"] not in str(denied.value)


def test_an_endpoint_without_tls_has_to_be_allowed(store, files):
    path = store.put("a", b"1")
    use_store_settings({key: value for key, value in store.settings.items() if key != "storage.s3.allow-http"})
    with pytest.raises(OSError, match=r"storage\.s3\.allow-http: true allows it"):
        files.status(path)


def test_a_path_needs_the_client_and_says_what_to_install(store, files, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(PlanError, match=r"pip install 'drey-engine\[stores\]'"):
        files.status("s3://other/a")


def test_an_http_server_gives_files_that_are_named(store):
    url = store.put_public("public/a.csv", b"a,b\n1,x\n")
    assert rows_of(csv_source(url, options=CsvOptions(header=True))[0]) == [{"a": 1, "b": "x"}]
    with pytest.raises(PlanError, match="does not say what files it has; name each file"):
        csv_source(url.replace("a.csv", "*.csv"))
    with pytest.raises(PlanError, match=r"b\.csv'\): no such file or folder, and no file matches it$"):
        csv_source(url.replace("a.csv", "b.csv"))
    with pytest.raises(PlanError, match="no file matches it; names of its files are written as they are, without esc"):
        csv_source(url.replace("a.csv", "a%20b.csv"))


def test_a_web_server_without_ranges_is_told(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,x\n")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said = "the web server does not answer requests for parts of a file; download it, and read the copy"
        with Environment() as env, pytest.raises(PlanError, match=said):
            env.read_csv(f"http://127.0.0.1:{server.server_address[1]}/a.csv", header=True)
        server.shutdown()


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "json", "arrow", "arrows", "orc"])
def test_rows_of_every_format_come_back(store, tmp_path, ending):
    written(WRITERS[ending](str(tmp_path / f"a.{ending}")))
    prefix = store.upload(tmp_path, f"format-{ending}")
    source = SOURCES[ending.removesuffix(".gz")]
    for path in (f"{prefix}/a.{ending}", prefix, f"{prefix}/*"):
        assert rows_of(source(path)) == TABLE.to_pylist()


def test_lines_of_texts_come_back(store):
    path = store.put("texts/a.txt", b"one\ntwo\n")
    assert rows_of(text_source(path, 2)[0]) == [{"line": "one"}, {"line": "two"}]


# Parquet: kernels read by a descriptor what was fetched ---------------------------------------------------------

WIDE = pa.table(
    {
        "n": range(20_000),
        "s": [f"text {index % 90}" for index in range(20_000)],
        "f": [index / 7 for index in range(20_000)],
        "l": [[index, None] for index in range(20_000)],
        "z": [f"{index * 7919 % 20_000:012}" for index in range(20_000)],
    }
)


def parquet_of(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("codec", ["snappy", "zstd", "none"])
def test_rows_of_parquet_are_decoded_out_of_what_was_fetched(store, codec):
    path = store.put(f"wide-{codec}.parquet", parquet_of(WIDE, row_group_size=6000, compression=codec))
    spec, statistics, _ = parquet_source(path)
    assert statistics.row_count == 20_000
    assert rows_of(spec) == WIDE.to_pylist()


def test_a_footer_is_one_request_and_a_row_group_its_wanted_columns(store, monkeypatch):
    big = pa.table(
        {
            "a": [random.Random(index).randbytes(100) for index in range(30_000)],
            "n": range(30_000),
            "b": [random.Random(index).randbytes(50) for index in range(30_000)],
        }
    )
    content = parquet_of(big, row_group_size=15_000, use_dictionary=False, compression="none")
    path = store.put("requests.parquet", content)
    asked = requests_of(monkeypatch)
    spec, _, _ = parquet_source(path)
    assert len(asked) == 1, asked
    asked.clear()
    spec = msgspec.structs.replace(spec, columns=("n",))
    assert [row["n"] for row in rows_of(spec)] == list(range(30_000))
    assert len(asked) == 2, "the footer is known: a request for each row group"
    assert sum(end - begin for begin, end in asked) < len(content) / 10


def test_a_file_holds_one_row_group_of_what_it_fetches(store):
    path = store.put("held.parquet", parquet_of(WIDE, row_group_size=6000))
    file = OpenFile(path, ["n", "z"])

    def held_bytes():
        groups = file._file._groups.values()
        return sum(len(part) for each in groups for _, part in each.source.parts_of())

    assert file.pages(0, ["n", "z"]).row_count == 6000
    assert held_bytes() == 0, "fetched for the headers of its pages alone"
    assert file.pages(0, ["n"]).held["n"] >= file.footer.row_group(0).column(0).total_compressed_size
    file.fetch(0, ["n", "z"])
    one = held_bytes()
    assert one >= file.fetched_bytes(0, ["n", "z"]) - 8192 > 0
    file.fetch(1, ["n"])
    assert 0 < held_bytes() < one
    file.let_go()
    assert held_bytes() == 0
    file.close()


def test_files_of_this_machine_are_read_by_their_own_descriptor(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    file = ChunkFile(LOCAL.open_ranges(str(tmp_path / "a")))
    file.fetch(0, [(0, 2)])
    assert (file.is_fetched, file.has(5), file.library_path(5)) == (False, True, str(tmp_path / "a"))
    assert os.pread(file.source(5), 3, 0) == b"abc"
    file.close()


def test_what_is_no_parquet_is_told(store):
    with pytest.raises(PlanError, match="is not a Parquet file"):
        parquet_source(store.put("none.parquet", b"a,b\n" * 100))
    whole = parquet_of(WIDE)
    with pytest.raises(PlanError, match="is not a Parquet file"):
        parquet_source(store.put("cut.parquet", whole[:-100]))
