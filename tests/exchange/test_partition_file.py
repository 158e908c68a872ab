"""A BLOCKING result as one data file and an index: golden bytes, damage, full disks."""

from __future__ import annotations

import errno
import functools
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import ConfigurationError, CorruptBlockError, DiskFullError, PartitionReleasedError, SpillError
from engine.exchange.block_index import BlockEntry
from engine.exchange.buffer_pool import BufferKind, unpooled_buffer
from engine.exchange.partition_file import PartitionFile, partition_identity
from engine.exchange.partition_folders import PartitionFolders
from engine.iomanager.disk_limit import DiskLimit
from tests.exchange.world import partition_id

IDENTITY = partition_identity(partition_id())
GOLDEN_DATA = (
    "4452455950415254"  # magic
    "0100000002000000"  # version, subpartitions
)


def write(path: Path) -> PartitionFile:
    file = PartitionFile(path, IDENTITY, 2)
    file.append(1, [unpooled_buffer(b"abcdefgh"), unpooled_buffer(b"12345678", BufferKind.LAST_FRAGMENT)])
    file.append(0, [unpooled_buffer(b"zzzzzzzz")])
    return file


def test_bytes_of_data_file_and_index_are_as_written_down(tmp_path: Path) -> None:
    file = write(tmp_path / "p.shuffle.data")
    file.finish()
    data = (tmp_path / "p.shuffle.data").read_bytes()
    assert data[:16].hex() == GOLDEN_DATA
    assert data[16:32] == IDENTITY
    assert len(data) == 64 + 32 + 2 * (8 + 8) + 32 + 8 + 8
    first = data[64:96]
    assert first[:16].hex() == "50424c4b" + "20000000" + "01000000" + "00000000"
    assert first[16:28] == IDENTITY[:8] + (2).to_bytes(4, "little")
    assert data[96:112].hex() == "0000" + "0000" + "08000000" + b"abcdefgh".hex()
    assert data[112:128].hex() == "0200" + "0000" + "08000000" + b"12345678".hex()
    index = (tmp_path / "p.shuffle.index").read_bytes()
    assert index[:16].hex() == "4452455950494458" + "0100000002000000"
    assert index[32:60].hex() == "01000000" + "8000000000000000" + "3000000000000000" + "00000000" + "01000000"
    file.delete()
    assert list(tmp_path.iterdir()) == []


def test_a_finished_file_can_be_opened_by_its_index(tmp_path: Path) -> None:
    path = tmp_path / "p.shuffle.data"
    written = write(path)
    written.finish()
    again = PartitionFile.open(path, IDENTITY)
    assert [list(blocks) for blocks in again.entries] == [list(blocks) for blocks in written.entries]
    assert [len(blocks) for blocks in again.entries] == [1, 1]
    buffers = again.read(1, again.entries[1][0])
    assert [(buffer.to_bytes(), buffer.kind) for buffer in buffers] == [(b"abcdefgh", 0), (b"12345678", 2)]
    with pytest.raises(CorruptBlockError):
        PartitionFile.open(path, bytes(16))
    again.delete()
    written.delete()


def test_what_the_system_has_in_memory_is_read_at_once_and_checked_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.shuffle.data"
    file = write(path)
    entry = file.entries[1][0]
    preadv = os.preadv

    def waits(*_: object) -> int:
        raise OSError(errno.EAGAIN, "it would wait")

    def has_a_part(descriptor: int, parts: list[bytearray], offset: int, flags: int) -> int:
        return preadv(descriptor, parts, offset) - 1

    for answer in (waits, has_a_part):
        monkeypatch.setattr(os, "preadv", answer)
        assert file.read_at_once(1, entry) is None
    monkeypatch.setattr(os, "preadv", lambda descriptor, parts, offset, flags: preadv(descriptor, parts, offset))
    buffers = file.read_at_once(1, entry)
    assert buffers is not None
    assert [(buffer.to_bytes(), buffer.kind) for buffer in buffers] == [(b"abcdefgh", 0), (b"12345678", 2)]
    content = bytearray(path.read_bytes())
    content[entry.offset + 40] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptBlockError, match="offset"):
        file.read_at_once(1, entry)
    file.delete()


def test_many_buffers_become_blocks_of_some_256_kib(tmp_path: Path) -> None:
    file = PartitionFile(tmp_path / "p.shuffle.data", IDENTITY, 1)
    page = bytes(32768)
    file.append(0, [unpooled_buffer(page) for _ in range(20)])
    assert [(entry.first_ordinal, entry.buffer_count) for entry in file.entries[0]] == [(0, 8), (8, 8), (16, 4)]
    file.delete()


def test_a_block_takes_no_more_memory_than_its_entry_in_the_index(tmp_path: Path) -> None:
    file = PartitionFile(tmp_path / "p.shuffle.data", IDENTITY, 1)
    buffer = unpooled_buffer(b"abcdefgh")
    file.append(0, [buffer])
    tracemalloc.start()
    try:
        for _ in range(4000):
            file.append(0, [buffer])
        assert tracemalloc.get_traced_memory()[0] < 4000 * 40
        file.finish()
        assert tracemalloc.get_traced_memory()[1] < 4000 * 80
    finally:
        tracemalloc.stop()
    with pytest.raises(IndexError):
        file.entries[0][4001]
    assert file.entries[0][-1] == file.entries[0][4000]
    file.delete()


@pytest.mark.parametrize("position", [64, 70, 85, 93, 97, 111])
def test_a_flipped_bit_is_an_error_that_names_file_and_offset(tmp_path: Path, position: int) -> None:
    path = tmp_path / "p.shuffle.data"
    file = write(path)
    content = bytearray(path.read_bytes())
    content[position] ^= 4
    path.write_bytes(content)
    with pytest.raises(CorruptBlockError, match=r"p\.shuffle\.data.*offset 64"):
        file.read(1, file.entries[1][0])
    file.delete()


def test_a_block_of_another_partition_or_place_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "p.shuffle.data")
    with pytest.raises(CorruptBlockError, match="not the one"):
        file.read(0, file.entries[1][0])
    with pytest.raises(CorruptBlockError, match="0 of 48 bytes"):
        file.read(0, BlockEntry(10_000, 48, 0, 1))
    file.delete()


@pytest.mark.parametrize("change", [lambda data: data + b"\0", lambda data: data[:-1]], ids=["longer", "shorter"])
def test_a_data_file_of_another_size_than_its_index_says_is_refused(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "p.shuffle.data"
    file = write(path)
    file.finish()
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(CorruptBlockError, match="but its index says"):
        PartitionFile.open(path, IDENTITY)
    file.delete()


def test_a_damaged_index_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.shuffle.data"
    file = write(path)
    file.finish()
    index = bytearray(file.index_path.read_bytes())
    index[-1] ^= 1
    file.index_path.write_bytes(index)
    with pytest.raises(CorruptBlockError, match="index"):
        PartitionFile.open(path, IDENTITY)
    file.delete()


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "p.shuffle.data")
    size = file.size_bytes
    real = os.pwritev

    def half_written(descriptor: int, parts: list[bytes], offset: int) -> int:
        real(descriptor, parts[:1], offset)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", half_written)
        with pytest.raises(DiskFullError, match=r"no room for 44 bytes in .* free\) for p\.shuffle\.data"):
            file.append(0, [unpooled_buffer(b"full")])
    assert (tmp_path / "p.shuffle.data").stat().st_size == size
    file.append(0, [unpooled_buffer(b"fits")])
    assert file.read(0, file.entries[0][1])[0].to_bytes() == b"fits"
    file.delete()


def test_a_disk_without_room_for_a_new_file_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int, _parts: list[bytes], _offset: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full)
        with pytest.raises(DiskFullError, match="free some space or add a directory to io"):
            PartitionFile(tmp_path / "p.shuffle.data", IDENTITY, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_file_moves_to_another_folder_when_its_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    folders = PartitionFolders([tmp_path / "a", tmp_path / "b"])
    first = folders.partition_path("p.shuffle.data")
    other_path = functools.partial(folders.partition_path, "p.shuffle.data")
    file = PartitionFile(first, IDENTITY, 1, other_path)
    file.append(0, [unpooled_buffer(b"one")])
    real = os.pwritev
    full = {first.parent}

    def guarded(descriptor: int, parts: list[bytes], offset: int) -> int:
        if Path(f"/proc/self/fd/{descriptor}").readlink().parent in full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, parts, offset)

    monkeypatch.setattr(os, "pwritev", guarded)
    file.append(0, [unpooled_buffer(b"two")])
    assert file.path.parent != first.parent
    assert not first.exists()
    full.add(file.path.parent)
    with pytest.raises(DiskFullError, match=r"no room for \d+ bytes of p\.shuffle\.data in .*a, .*b \(at most 0"):
        file.append(0, [unpooled_buffer(b"three")])
    file.finish()
    assert [buffer.to_bytes() for entry in file.entries[0] for buffer in file.read(0, entry)] == [b"one", b"two"]
    file.delete()
    assert [list((tmp_path / name).iterdir()) for name in ("a", "b")] == [[], []]


def test_a_file_that_is_deleted_while_it_moves_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    folders = PartitionFolders([tmp_path / "a", tmp_path / "b"])
    first = folders.partition_path("p.shuffle.data")
    file = PartitionFile(first, IDENTITY, 1, functools.partial(folders.partition_path, "p.shuffle.data"))
    real = os.pwritev

    def full_then_deleted(descriptor: int, parts: list[bytes], offset: int) -> int:
        if Path(f"/proc/self/fd/{descriptor}").readlink().parent == first.parent:
            raise OSError(errno.ENOSPC, "No space left on device")
        file.delete()
        return real(descriptor, parts, offset)

    monkeypatch.setattr(os, "pwritev", full_then_deleted)
    with pytest.raises(PartitionReleasedError):
        file.append(0, [unpooled_buffer(b"one")])
    assert [list((tmp_path / name).iterdir()) for name in ("a", "b")] == [[], []]


def test_folders_are_refused_when_there_are_none_or_none_has_room(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        PartitionFolders([])
    with pytest.raises(DiskFullError):
        PartitionFolders([tmp_path]).partition_path("p", 1 << 60)


def test_a_folder_with_just_the_room_that_is_needed_is_taken(tmp_path: Path) -> None:
    folders = PartitionFolders([tmp_path], limits=[DiskLimit(tmp_path, 1000)])
    assert folders.partition_path("p", 1000) == tmp_path / "p"
    with pytest.raises(DiskFullError):
        folders.partition_path("p", 1001)


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, offset: real(fd, [b"".join(parts)[:5]], offset))
    file = write(tmp_path / "p.shuffle.data")
    assert file.read(0, file.entries[0][0])[0].to_bytes() == b"zzzzzzzz"
    file.delete()


def test_a_deleted_file_can_neither_be_read_nor_written(tmp_path: Path) -> None:
    file = write(tmp_path / "p.shuffle.data")
    file.delete()
    file.delete()
    with pytest.raises(PartitionReleasedError):
        file.read(0, file.entries[0][0])
    with pytest.raises(PartitionReleasedError):
        file.append(0, [unpooled_buffer(b"x")])


def test_a_folder_that_is_gone_is_a_spill_error(tmp_path: Path) -> None:
    with pytest.raises(SpillError, match="cannot create"):
        PartitionFile(tmp_path / "none" / "p.shuffle.data", IDENTITY, 1)


def test_a_folder_that_vanished_is_passed_over_and_named_when_there_is_no_other(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    folders = PartitionFolders([tmp_path / "gone", tmp_path / "here"])
    assert folders.partition_path("p.shuffle.data", 10) == tmp_path / "here" / "p.shuffle.data"
    with pytest.raises(SpillError, match=r"gone: No such file or directory; check the directories of io\.tmp\.dirs"):
        PartitionFolders([tmp_path / "gone"]).partition_path("p.shuffle.data", 10)
