"""Spill files that are damaged, cut short, mixed up or gone: an error that names file and offset."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CorruptBlockError, SpillError
from engine.iomanager.io_manager import IOManager
from engine.iomanager.open_files import OpenFile, shed
from engine.iomanager.spill_directory import SpillDirectory
from engine.iomanager.spill_file import SpillFile
from engine.iomanager.spill_identity import SpillIdentity
from engine.iomanager.spill_space import SpillSpace
from tests.iomanager.conftest import IDENTITY
from tests.iomanager.test_block_format import sealed


def _file(space: SpillSpace, text: bytes = b"abcdefgh", blocks: int = 3) -> SpillFile:
    writer = space.writer("victim", 1024)
    for index in range(blocks):
        writer.write_bytes((text + bytes([index])) * 60)
        writer.cut_block()
    return writer.finish()


def _place(file: SpillFile, block: int) -> tuple[str, int, int]:
    """Path, offset and bytes with header of a block of a file of one extent."""
    (path,) = file.paths
    data, offset = Path(path).read_bytes(), 0
    for _ in range(block):
        offset += 72 + int.from_bytes(data[offset + 24 : offset + 32], "little")
    return path, offset, 72 + int.from_bytes(data[offset + 24 : offset + 32], "little")


def _read(file: SpillFile) -> None:
    with file.reader() as reader:
        for _ in reader:
            pass


def test_every_byte_of_a_file_is_guarded(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        file = _file(space)
        path = Path(file.paths[0])
        good = path.read_bytes()
        places = [_place(file, index) for index in range(3)]
        ends = [sum(place[1:]) for place in places]
        for position in range(len(good)):
            changed = bytearray(good)
            changed[position] ^= 0x10
            path.write_bytes(changed)
            block = next(index for index, end in enumerate(ends) if position < end)
            offset = places[block][1]
            with pytest.raises(CorruptBlockError, match=f"block {block} at offset {offset} of {path}"):
                _read(file)
        path.write_bytes(good)
        _read(file)


def test_every_truncation_of_a_file_is_refused(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        file = _file(space, blocks=2)
        path = Path(file.paths[0])
        for size in range(path.stat().st_size - 1, -1, -1):
            os.truncate(path, size)
            with pytest.raises(CorruptBlockError, match=f"of {path} cannot be used: it is cut short"):
                _read(file)


def test_swapped_repeated_and_foreign_blocks_are_refused(io_manager: IOManager) -> None:
    stranger = SpillIdentity(IDENTITY.job_id, 3, 1, 9)
    with io_manager.space(IDENTITY) as space, io_manager.space(stranger) as other_space:
        file, sibling, foreign = _file(space), _file(space), _file(other_space)
        path = Path(file.paths[0])
        good = path.read_bytes()
        length = _place(file, 0)[2]
        assert [_place(file, index)[2] for index in range(3)] == [length] * 3
        blocks = [good[index * length : (index + 1) * length] for index in range(3)]
        for order in ([1, 0, 2], [0, 0, 1], [0, 2, 2]):
            path.write_bytes(b"".join(blocks[index] for index in order))
            with pytest.raises(CorruptBlockError, match="another block of this file"):
                _read(file)
        for other in (sibling, foreign):
            path.write_bytes(Path(other.paths[0]).read_bytes())
            with pytest.raises(CorruptBlockError, match="another job, subtask, attempt or file"):
                _read(file)


def test_good_blocks_before_a_bad_one_are_delivered_and_the_error_stays(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        file = _file(space)
        path, offset, length = _place(file, 1)
        data = bytearray(Path(path).read_bytes())
        data[offset + length - 1] ^= 1
        Path(path).write_bytes(data)
        with file.reader() as reader:
            assert next(reader) == b"abcdefgh\x00" * 60
            for _ in range(2):
                with pytest.raises(CorruptBlockError, match="block 1"):
                    next(reader)
        with file.reader(0, (2, offset + length, 0)) as reader:
            assert list(reader) == [b"abcdefgh\x02" * 60]
        with file.reader(0, (2, offset, 0)) as reader, pytest.raises(CorruptBlockError, match="another block of this"):
            next(reader)
        assert CorruptBlockError.retryable


def test_a_file_that_vanished_is_named(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        file = _file(space)
        Path(file.paths[0]).unlink()
        shed()
        with pytest.raises(SpillError, match=f"{file.paths[0]} cannot be opened"):
            file.reader()


@pytest.mark.parametrize("codec", [1, 2])
def test_a_payload_that_does_not_decompress_is_refused_by_readers(io_manager: IOManager, codec: int) -> None:
    """Its checksums are right: it was written so, by a disk or a machine that lies."""
    with io_manager.space(IDENTITY) as space:
        writer = space.writer("victim", 1 << 16)
        writer.write_bytes(b"abcdefgh" * 4000)
        file = writer.finish()
        path = Path(file.paths[0])
        good = path.read_bytes()
        stored = int.from_bytes(good[24:32], "little")
        assert good[5] != 0 and stored < int.from_bytes(good[16:24], "little"), "the block is compressed"
        path.write_bytes(sealed(good, codec=(5, bytes([codec])), payload=(72, b"\xff" * stored)))
        with pytest.raises(CorruptBlockError, match="does not decompress"):
            _read(file)
        path.write_bytes(good)


def test_a_disk_that_cannot_be_read_is_an_error_with_file_and_reason(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        file = _file(space)
        path = Path(file.paths[0])
        good = path.read_bytes()
        with file.reader(0) as first, file.reader(0, (1, 612, 0)) as second:
            path.unlink()
            path.mkdir()
            shed()
            for reader, place in ((first, "block 0 at offset 0"), (second, "block 1 at offset 612")):
                with pytest.raises(SpillError, match=rf"{place} of {path} failed: Is a directory") as raised:
                    next(reader)
                assert isinstance(raised.value.__cause__, OSError)
                assert raised.value.__cause__.errno == errno.EISDIR
        path.rmdir()
        path.write_bytes(good)
        _read(file)


def test_a_disk_that_cannot_be_written_is_an_error_for_every_call_after_it(
    io_manager: IOManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*arguments: Any) -> tuple[OpenFile, SpillDirectory]:
        file, directory = SpillSpace.open_extent(space, *arguments)
        Path(file.path).unlink()
        Path(file.path).symlink_to("nowhere")
        shed()
        return file, directory

    with io_manager.space(IDENTITY) as space:
        monkeypatch.setattr(space, "open_extent", lost)
        writer = space.writer("victim", 1024)
        for attempt in range(2):
            with pytest.raises(SpillError, match=r"writing .* at offset 0 failed: No such file"):
                for _ in range(10_000 if attempt == 0 else 1):
                    writer.write_bytes(b"x" * 500)
        with pytest.raises(SpillError, match="No such file"):
            writer.finish()
        writer.discard()
        assert io_manager.buffer_bytes_out == 0
        assert list(io_manager.folders[0].rglob("*.spill")) == list(io_manager.folders[1].rglob("*.spill")) == []
