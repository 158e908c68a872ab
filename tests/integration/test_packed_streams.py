"""Compressed files of several streams, through whole jobs: all of their text is read, or damage is named."""

import bz2
import gzip
import lzma

import lz4.frame
import pyarrow as pa
import pytest

from engine.errors import DataError, JobExecutionError
from engine.files.packed_streams import PIECE_BYTES, PackedStreams

LINES = [f"{index},name {index * 7919 % 1000}" for index in range(20_000)]


def zstd(data):
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return out.getvalue().to_pybytes()


def lz4_with_checksums(data):
    return lz4.frame.compress(data, content_checksum=True)


PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "lz4": lz4_with_checksums, "zst": zstd}
#: a frame of lz4 and zstd that has no text
SKIPPED = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345"


@pytest.fixture(scope="module")
def env(environment):
    return environment


def packed(ending, lines):
    return PACK[ending]("".join(f"{line}\n" for line in lines).encode())


def lines_of(env, folder, ending, data):
    (folder / f"a.csv.{ending}").write_bytes(data)
    return env.read_text(folder / f"a.csv.{ending}").to_arrow().column(0).to_pylist()


@pytest.mark.parametrize("ending", PACK)
def test_streams_behind_each_other_are_one_text(env, tmp_path, ending):
    first, nothing, second = packed(ending, LINES), packed(ending, []), packed(ending, LINES[:3])
    assert lines_of(env, tmp_path, ending, first + nothing + nothing + second) == LINES + LINES[:3]


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("damage", ["bits", "head", "cut", "garbage", "one byte", "line end"])
def test_a_second_stream_that_is_none_is_an_error_never_the_end(env, tmp_path, ending, damage):
    first, second = packed(ending, LINES), bytearray(packed(ending, LINES))
    if damage == "bits" and ending == "zst":
        pytest.skip("Arrow writes zstd without checksums: nothing tells a flipped bit")
    if damage in ("bits", "head"):
        second[1 if damage == "head" else len(second) // 2] ^= 0x55
    behind = {"cut": bytes(second[:-1]), "garbage": b"and more of it", "one byte": b"x", "line end": b"\n"}
    with pytest.raises((DataError, JobExecutionError), match=rf"a\.csv\.{ending}: no whole \w+ file") as caught:
        lines_of(env, tmp_path, ending, first + behind.get(damage, bytes(second)))
    if ending in ("gz", "bz2", "xz"):
        assert f"stream 2, from byte {len(first)} of the file on: " in str(caught.value)


@pytest.mark.parametrize(
    ("ending", "zeros"), [("gz", 1), ("gz", 1000), ("gz", 2 * PIECE_BYTES), ("xz", 4), ("xz", 1024)]
)
def test_padding_that_a_format_allows_is_passed_over(env, tmp_path, ending, zeros):
    first, second = packed(ending, LINES[:5]), packed(ending, LINES[5:9])
    assert lines_of(env, tmp_path, ending, first + bytes(zeros)) == LINES[:5]
    assert lines_of(env, tmp_path, ending, first + bytes(zeros) + second + bytes(zeros)) == LINES[:9]


@pytest.mark.parametrize(("ending", "zeros"), [("xz", 3), ("xz", 6), ("bz2", 4), ("lz4", 8), ("zst", 8)])
def test_other_zeros_behind_a_stream_are_damage(env, tmp_path, ending, zeros):
    with pytest.raises((DataError, JobExecutionError), match=r"no whole \w+ file"):
        lines_of(env, tmp_path, ending, packed(ending, LINES[:5]) + bytes(zeros))


@pytest.mark.parametrize("ending", ["lz4", "zst"])
def test_frames_without_text_are_passed_over(env, tmp_path, ending):
    assert lines_of(env, tmp_path, ending, SKIPPED + packed(ending, LINES[:2]) + SKIPPED) == LINES[:2]


@pytest.mark.parametrize(("codec", "ending"), [("gzip", "gz"), ("bz2", "bz2"), ("xz", "xz")])
@pytest.mark.parametrize("room", [1, 7, 4096, 1 << 20])
def test_text_is_whole_whatever_is_asked_for_at_a_time(tmp_path, codec, ending, room):
    path = tmp_path / "a"
    path.write_bytes(packed(ending, LINES[:40]) + packed(ending, LINES[40:50]))
    target, found = memoryview(bytearray(room)), bytearray()
    with path.open("rb") as file:
        streams = PackedStreams(file, codec)
        while size := streams.readinto(target):
            found += target[:size]
    assert found.decode().splitlines() == LINES[:50]
