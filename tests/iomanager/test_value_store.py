"""Wide values in files: round trip, damage, release, full disks."""

import errno
import os
import threading
from pathlib import Path

import pytest

from engine.errors import CorruptBlockError, DiskFullError, SpillError
from engine.iomanager import value_store
from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_identity import SpillIdentity
from engine.iomanager.spill_space import SpillSpace
from engine.memory import value_stores
from engine.memory.value_stores import BLOCK_BYTES
from tests.iomanager.conftest import IDENTITY


def read(place: tuple[int, int, int, int], size: int) -> bytes:
    number, file, offset, checksum = place
    into = bytearray(size)
    store = value_stores.find(number)
    assert store is not None
    store.read_value(file, offset, checksum, memoryview(into))
    return bytes(into)


def test_values_come_back_from_many_threads(io_manager: IOManager) -> None:
    values = [bytes([index]) * (index * 1000 + 1) for index in range(40)]
    places: dict[int, tuple[int, int, int, int]] = {}
    with io_manager.space(IDENTITY) as space:

        def write(part: int) -> None:
            for index in range(part, len(values), 4):
                places[index] = space.write_value(memoryview(values[index]))

        threads = [threading.Thread(target=write, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert [read(places[index], len(value)) for index, value in enumerate(values)] == values
        assert space.spilled_bytes == sum(map(len, values))
    assert value_stores.find(places[0][0]) is None


def test_a_closed_space_takes_and_gives_nothing(io_manager: IOManager) -> None:
    space = io_manager.space(IDENTITY)
    store = value_stores.find(space.write_value(memoryview(b"x" * 100))[0])
    space.close()
    with pytest.raises(SpillError):
        space.write_value(memoryview(b"x"))
    assert store is not None
    with pytest.raises(SpillError, match="released"):
        store.read_value(0, 0, 0, memoryview(bytearray(1)))


def test_damage_names_file_and_offset(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        space.write_value(memoryview(b"first" * 10))
        place = space.write_value(memoryview(b"second" * 100))
        (path,) = [path for folder in io_manager.folders for path in folder.glob("*.spill")]
        with path.open("r+b") as file:
            file.seek(61)
            file.write(b"?")
        with pytest.raises(CorruptBlockError, match=rf"{path.name}.*offset 54 is damaged"):
            read(place, 600)
        with pytest.raises(CorruptBlockError, match="end after"):
            read((place[0], place[1], place[2] + 1, place[3]), 600)
        with pytest.raises(CorruptBlockError, match="damaged"):
            read((place[0], 0, 0, place[3]), 50)


def test_blocks_of_a_value_come_one_by_one_and_are_checked(io_manager: IOManager) -> None:
    value = bytes(range(256)) * 2500  # two blocks and a half
    blocks = [value[start : start + BLOCK_BYTES] for start in range(0, len(value), BLOCK_BYTES)]
    with io_manager.space(IDENTITY) as space:
        space.write_value(memoryview(b"before"))
        number, file, offset, checksum = space.write_value(memoryview(value))
        store = value_stores.find(number)
        assert store is not None
        opened = store.open_value(file, offset, len(value), checksum)
        for index in (2, 0, 1):
            into = bytearray(len(blocks[index]))
            opened.read_block(index, memoryview(into))
            assert into == blocks[index]
        (path,) = [path for folder in io_manager.folders for path in folder.glob("*.spill")]
        with path.open("r+b") as damaged:
            damaged.seek(offset + BLOCK_BYTES)
            damaged.write(b"?")
        opened.read_block(0, memoryview(bytearray(BLOCK_BYTES)))
        with pytest.raises(CorruptBlockError, match=f"{len(value)} bytes at offset {offset} is damaged"):
            opened.read_block(1, memoryview(bytearray(BLOCK_BYTES)))
        with path.open("r+b") as damaged:
            damaged.seek(offset + len(value))
            damaged.write(b"????")
        with pytest.raises(CorruptBlockError, match="is damaged"):
            store.open_value(file, offset, len(value), checksum)
        with pytest.raises(CorruptBlockError, match="is damaged"):
            store.open_value(file, offset, len(value) - 8, checksum)


def test_a_full_disk_is_left_for_another_one(io_manager: IOManager, monkeypatch: pytest.MonkeyPatch) -> None:
    full: set[int] = set()

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        full.add(descriptor) if not full else None
        if descriptor in full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data, offset)

    real = os.pwrite
    monkeypatch.setattr(value_store.os, "pwrite", pwrite)
    with io_manager.space(IDENTITY) as space:
        place = space.write_value(memoryview(b"value" * 100))
        assert read(place, 500) == b"value" * 100
        assert place[1] == 1


def test_when_all_disks_are_full_the_error_says_so(io_manager: IOManager, monkeypatch: pytest.MonkeyPatch) -> None:
    def pwrite(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(value_store.os, "pwrite", pwrite)
    with io_manager.space(IDENTITY) as space, pytest.raises(DiskFullError, match=r"io\.tmp\.dirs"):
        space.write_value(memoryview(b"value" * 100))


def test_no_file_is_left(tmp_path: Path) -> None:
    with IOManager([str(tmp_path)]) as manager:
        manager.space(IDENTITY).write_value(memoryview(b"x" * 1000))
        assert list(tmp_path.rglob("*.spill"))
    assert not list(tmp_path.iterdir())


def find(space: SpillSpace, value: bytes, value_hash: int) -> value_stores.Place | None:
    return space.find_value(memoryview(value), value_hash)


def test_an_equal_value_is_found_and_one_that_only_shares_its_hash_is_not(io_manager: IOManager) -> None:
    value = bytes(range(256)) * 2500
    with io_manager.space(IDENTITY) as space:
        assert find(space, value, 7) is None
        place = space.write_value(memoryview(value), 7)
        assert find(space, value, 7) == place
        assert find(space, value, 8) is None
        for other in (
            value[:-1],
            value[:-1] + b"?",
            b"?" + value[1:],
            value[:BLOCK_BYTES] + b"?" + value[BLOCK_BYTES + 1 :],
        ):
            assert find(space, other, 7) is None
        space.write_value(memoryview(b"nobody asks for it"))
        assert find(space, b"nobody asks for it", 0) is None
    assert find(space, value, 7) is None


def test_what_lies_with_the_job_is_found_by_its_operators_and_by_no_other_job(io_manager: IOManager) -> None:
    other_job = SpillIdentity("f" * 32, 0, 0, 0)
    with io_manager.space(IDENTITY) as space, io_manager.space(other_job) as other:
        place = io_manager.job_space(IDENTITY.job_id).write_value(memoryview(b"value" * 100), 3)
        own = space.write_value(memoryview(b"own" * 100), 3)
        assert find(space, b"value" * 100, 3) == place
        assert find(space, b"own" * 100, 3) == own
        assert find(other, b"value" * 100, 3) is None
        assert find(io_manager.job_space(IDENTITY.job_id), b"own" * 100, 3) is None, "it does not live as long"
        assert read(place, 500) == b"value" * 100
        io_manager.release_job(IDENTITY.job_id)
        assert find(space, b"value" * 100, 3) is None


def test_a_value_that_is_damaged_or_gone_is_not_found_but_written_again(io_manager: IOManager) -> None:
    value = b"value" * 100
    with io_manager.space(IDENTITY) as space:
        space.write_value(memoryview(value), 1)
        (path,) = [path for folder in io_manager.folders for path in folder.glob("*.spill")]
        with path.open("r+b") as file:
            file.seek(60)
            file.write(b"?")
        assert find(space, value, 1) is None
        again = space.write_value(memoryview(value), 1)
        assert find(space, value, 1) == again
        path.write_bytes(b"")
        assert find(space, value, 1) is None


def test_only_so_many_values_are_kept_in_mind(io_manager: IOManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_store, "FOUND_MAX", 3)
    values = [bytes([index]) * 10 for index in range(5)]
    with io_manager.space(IDENTITY) as space:
        for index, value in enumerate(values):
            space.write_value(memoryview(value), index)
        assert [find(space, value, index) is None for index, value in enumerate(values)] == [True, True, *[False] * 3]


def test_the_part_of_a_task_counts_what_it_writes_only(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        first, second = value_store.CountedValues(space), value_store.CountedValues(space)
        place = first.write_value(memoryview(b"x" * 500), 9)
        assert second.find_value(memoryview(b"x" * 500), 9) == place
        assert (first.spilled_bytes, second.spilled_bytes) == (500, 0)
