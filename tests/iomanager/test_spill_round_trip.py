"""Rows out to disk and back: byte for byte, in order, whatever runs beside them."""

import contextlib
import random
import resource
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import SpillError, TaskCancelledError
from engine.iomanager.crc32c import crc32c
from engine.iomanager.io_manager import IOManager
from engine.iomanager.open_files import shed
from engine.iomanager.spill_file import SpillFile
from engine.iomanager.spill_space import SpillSpace
from engine.iomanager.spill_writer import SpillWriter
from engine.memory.manager import MemoryManager
from tests.heap import heap_bytes
from tests.iomanager.conftest import IDENTITY
from tests.native import _spill_probe as probe

ROWS = st.lists(
    st.one_of(
        st.binary(max_size=300),
        st.builds(lambda unit, n: unit * n, st.binary(min_size=1, max_size=20), st.integers(1, 400)),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.sampled_from([1024, 1500, 4096, 262144]), st.integers(0, 3), st.booleans())
def test_rows_come_back_in_order_and_no_row_is_cut(
    io_manager: IOManager, rows: list[bytes], block_size: int, prefetch: int, keep_gil: bool
) -> None:
    with io_manager.space(IDENTITY) as space:
        writer = space.writer("run", block_size)
        for row in rows:
            probe.write_rows(writer, row, max(len(row), 1), keep_gil)
        file = writer.finish()
        assert file.raw_bytes == space.raw_bytes == sum(map(len, rows))
        assert file.stored_bytes == space.spilled_bytes == sum(Path(path).stat().st_size for path in file.paths)
        with file.reader(prefetch) as reader:
            blocks = list(reader)
        assert blocks == _cut(rows, block_size)
        assert len(blocks) == file.block_count


def _cut(rows: list[bytes], block_size: int) -> list[bytes]:
    """The oracle: what is in each block."""
    blocks, current = [], b""
    for row in rows:
        if current and len(current) + len(row) > block_size:
            blocks.append(current)
            current = b""
        current += row
        if len(current) > block_size:
            blocks.append(current)
            current = b""
    return [*blocks, current] if current else blocks


def test_ten_thousand_pages_go_out_and_come_back_byte_equal(io_manager: IOManager) -> None:
    chooser = random.Random(7)
    with MemoryManager(4 << 20) as memory, io_manager.space(IDENTITY) as space:
        (segment,) = memory.allocate("test", 1)
        writer = space.writer("pages")
        sent = 0
        for index in range(10_000):
            segment.put_bytes(chooser.randrange(32768 - 64), chooser.randbytes(64))
            segment.put_bytes(0, index.to_bytes(8, "little"))
            sent = crc32c(segment, sent)
            writer.write_bytes(segment)
        file = writer.finish()
        with file.reader() as reader:
            blocks, total, received, aligned = probe.drain(reader, True)
        assert (blocks, total, received, aligned) == (1250, 10_000 * 32768, sent, True)
        memory.release("test", [segment])


def test_a_row_larger_than_a_block_is_a_block_of_its_own(io_manager: IOManager) -> None:
    huge = random.Random(3).randbytes(3_000_000)
    with io_manager.space(IDENTITY) as space:
        writer = space.writer("huge", 4096)
        writer.write_bytes(b"before")
        writer.write_bytes(huge)
        writer.write_bytes(b"after")
        file = writer.finish()
        with file.reader() as reader:
            assert list(reader) == [b"before", huge, b"after"]


def test_compression_is_kept_when_it_saves_a_tenth_and_given_up_when_it_does_not(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        dense, loose, mixed = (space.writer(name, 65536) for name in ("dense", "loose", "mixed"))
        for index in range(20):
            dense.write_bytes(random.Random(index).randbytes(65536))
            loose.write_bytes(b"same row " * 7000)
            mixed.write_bytes(random.Random(index).randbytes(65536) if index < 3 else b"same row " * 7000)
        files = [writer.finish() for writer in (dense, loose, mixed)]
        assert files[0].stored_bytes == files[0].raw_bytes + 20 * 72
        assert files[1].stored_bytes < files[1].raw_bytes // 10
        assert files[2].stored_bytes == files[2].raw_bytes + 20 * 72
        for file in files:
            with file.reader() as reader:
                assert sum(map(len, reader)) == file.raw_bytes


def test_without_compression_nothing_is_compressed(tmp_path: Path) -> None:
    with IOManager([str(tmp_path)], compression="none") as manager, manager.space(IDENTITY) as space:
        writer = space.writer("plain")
        writer.write_bytes(bytes(100_000))
        file = writer.finish()
        assert file.stored_bytes == 100_072
        with file.reader() as reader:
            assert list(reader) == [bytes(100_000)]


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("extent_bytes", [1 << 30, 9000, 2500])
def test_marks_begin_ranges_that_a_reader_can_read_alone(
    io_manager: IOManager, monkeypatch: pytest.MonkeyPatch, extent_bytes: int, prefetch: int
) -> None:
    """On whichever disk they came to lie when others were full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (extent_bytes, limits[1]))
    try:
        with io_manager.space(IDENTITY) as space:
            writer = space.writer("partition", 1024)
            for subpartition in range(5):
                assert writer.mark_block() == subpartition
                for row in range(subpartition * 10):
                    writer.write_bytes(bytes([subpartition, row]) + random.Random(row).randbytes(98))
            assert writer.mark_block() == 5
            file = writer.finish()
            places = [file.place(mark) for mark in range(6)]
            assert places[0] == places[1] == (0, 0, 0)
            assert places[5][0] == file.block_count
            assert {extent for _, _, extent in places} >= {0, len(file.paths) - 1}
            assert len(file.paths) == {1 << 30: 1, 9000: 2, 2500: 5}[extent_bytes]
            for subpartition in range(5):
                count = places[subpartition + 1][0] - places[subpartition][0]
                with file.reader(prefetch, places[subpartition], count) as reader:
                    rows = b"".join(reader)
                assert rows[::100] == bytes([subpartition]) * (10 * subpartition)
                assert rows[1::100] == bytes(range(10 * subpartition))
            with pytest.raises(IndexError, match="mark 6 of 6"):
                file.place(6)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_file_takes_the_same_memory_however_many_blocks_it_has(io_manager: IOManager) -> None:
    blocks = 50_000
    with io_manager.space(IDENTITY) as space:
        writer = space.writer("run", 1024)
        writer.write_bytes(bytes(1024))
        writer.cut_block()
        before = heap_bytes()
        probe.write_rows(writer, bytes(1024 * blocks), 1024)
        file = writer.finish()
        assert file.block_count == blocks + 1
        assert heap_bytes() - before < 2 * blocks


def test_many_writers_and_readers_share_the_threads(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        writers = [space.writer(f"partition {index}", 4096) for index in range(64)]
        for turn in range(200):
            for index, writer in enumerate(writers):
                writer.write_bytes(bytes([index]) * (50 + turn))
        files = [writer.finish() for writer in writers]
        readers = [file.reader() for file in files]
        for index, reader in enumerate(readers):
            assert set(b"".join(reader)) == {index}
            reader.close()
        names = {thread.name for thread in threading.enumerate()}
        assert {"drey-spill-write-0", "drey-spill-read-0"} & names
        assert len([name for name in names if name.startswith("drey-spill")]) <= 4


def test_directories_of_one_size_take_turns(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        used = []
        for _ in range(6):
            writer = space.writer("run", 1024)
            writer.write_bytes(bytes(2000))
            used.append(Path(writer.finish().paths[0]).parent)
        assert [used.count(folder) for folder in io_manager.folders] == [3, 3]


def test_tasks_in_threads_spill_at_the_same_time(io_manager: IOManager) -> None:
    results: list[bool] = []

    def task(number: int) -> None:
        data = random.Random(number).randbytes(200_000) * 5
        with io_manager.space(IDENTITY) as space:
            files = []
            for _ in range(3):
                writer = space.writer("run", 32768)
                probe.write_rows(writer, data, 777)
                files.append(writer.finish())
            for file in files:
                with file.reader(1) as reader:
                    results.append(b"".join(reader) == data)

    threads = [threading.Thread(target=task, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 18


def test_nothing_is_created_and_no_thread_starts_before_the_first_block(tmp_path: Path) -> None:
    with IOManager([str(tmp_path)]) as manager, manager.space(IDENTITY) as space:
        file = space.writer("empty").finish()
        writer = space.writer("small")
        writer.write_bytes(b"in memory still")
        assert [path.name for path in manager.folders[0].iterdir()] == ["lock"]
        assert not any(thread.name.startswith("drey-spill") for thread in threading.enumerate())
        assert (file.block_count, file.raw_bytes, file.stored_bytes, file.paths) == (0, 0, 0, ())
        with file.reader() as reader:
            assert list(reader) == []


def test_delete_discard_and_close_leave_no_file(io_manager: IOManager) -> None:
    space = io_manager.space(IDENTITY)
    kept, deleted, discarded, open_writer = (space.writer(name, 1024) for name in "abcd")
    for writer in (kept, deleted, discarded, open_writer):
        writer.write_bytes(bytes(1000))
        writer.write_bytes(bytes(1000))
    file, gone = kept.finish(), deleted.finish()
    reader = file.reader()
    gone.delete()
    gone.delete()
    discarded.discard()
    discarded.discard()
    with pytest.raises(SpillError, match="has been deleted"):
        gone.reader()
    assert space.raw_bytes == 8000
    space.close()
    space.close()
    for folder in io_manager.folders:
        assert [path.name for path in folder.iterdir()] == ["lock"]
    with pytest.raises(ValueError, match="closed"):
        next(reader)
    with pytest.raises(SpillError, match="is closed"):
        space.writer("late")
    with pytest.raises(SpillError, match="has been deleted"):
        file.reader()


def test_a_reader_outlives_the_deletion_of_its_file(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        writer = space.writer("run", 1024)
        for index in range(50):
            writer.write_bytes(bytes([index]) * 1000)
        file = writer.finish()
        with file.reader(1) as reader:
            next(reader)
            file.delete()
            shed()
            assert len(list(reader)) == 49
            with pytest.raises(SpillError, match="has been deleted"):
                file.reader()
            assert Path(file.paths[0]).exists()
        assert not Path(file.paths[0]).exists()


def test_a_finished_writer_refuses_more_rows(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        writer: SpillWriter = space.writer("run")
        writer.write_bytes(b"x")
        writer.finish()
        for call in (lambda: writer.write_bytes(b"y"), writer.finish, writer.cut_block):
            with pytest.raises(ValueError, match="finished or discarded"):
                call()


def test_impossible_arguments_are_refused(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        with pytest.raises(ValueError, match="block size"):
            space.writer("run", 10)
        writer = space.writer("run")
        writer.write_bytes(b"x")
        file = writer.finish()
        for arguments in [(2, (0, 0, 0), 2), (2, (-1, 0, 0), 1), (-1,), (2, (2, 0, 0), 0)]:
            with pytest.raises(ValueError, match="blocks"):
                file.reader(*arguments)
        for mark in (-1, 0):
            with pytest.raises(IndexError):
                file.place(mark)


def test_closing_the_manager_closes_spaces_that_were_left_open(tmp_path: Path) -> None:
    manager = IOManager([str(tmp_path)])
    space = manager.space(IDENTITY)
    writer = space.writer("run", 1024)
    for _ in range(10):
        writer.write_bytes(bytes(1000))
    manager.close()
    manager.close()
    assert space.closed and manager.buffer_bytes_out == 0 and list(tmp_path.iterdir()) == []
    with pytest.raises(SpillError, match="closed"):
        manager.space(IDENTITY)


def test_cancelling_a_space_ends_its_writers_and_readers_and_those_to_come(io_manager: IOManager) -> None:
    space = io_manager.space(IDENTITY)
    file = _file_of(space, 40)
    reader, writer = file.reader(), space.writer("open", 1024)
    next(reader)
    writer.write_bytes(bytes(5000))
    space.cancel()
    for call in (
        lambda: next(reader),
        lambda: writer.write_bytes(bytes(8)),
        writer.finish,
        file.reader,
        lambda: space.writer("late"),
    ):
        with pytest.raises(TaskCancelledError):
            call()
    space.close()
    assert all(list(folder.glob("*.spill")) == [] for folder in io_manager.folders)


def _file_of(space: SpillSpace, blocks: int) -> SpillFile:
    writer = space.writer("run", 1024)
    for _ in range(blocks):
        writer.write_bytes(bytes(1024))
    return writer.finish()


def test_bytes_are_counted_while_writers_come_and_go(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        counted = []

        class Meanwhile:
            """A writer; while it is asked, the operator opens another one."""

            @property
            def stored_bytes(self) -> int:
                counted.append(space.writer("run", 1024))
                return 5

            raw_bytes = stored_bytes

            def discard(self) -> None:
                pass

        space._writers.add(Meanwhile())
        assert (space.spilled_bytes, space.raw_bytes) == (5, 5)
        assert len(counted) == 2


def test_readers_of_one_file_share_its_descriptor_and_need_it_only_while_they_read(io_manager: IOManager) -> None:
    def open_descriptors(path: str) -> int:
        count = 0
        for entry in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                count += str(entry.readlink()) == path
        return count

    with io_manager.space(IDENTITY) as space:
        writer = space.writer("runs", 1024)
        for index in range(50):
            writer.mark_block()
            writer.write_bytes(bytes([index]) * 600)
        file = writer.finish()
        (path,) = file.paths
        readers = [file.reader(index % 2, file.place(index), 2) for index in range(20)]
        assert open_descriptors(path) == 1
        for index, reader in reversed(list(enumerate(readers))):  # the last one has read ahead after all others
            assert list(reader) == [bytes([index]) * 600, bytes([index + 1]) * 600]
            shed()
            assert open_descriptors(path) == 0
            reader.close()
            reader.close()

        def read_each() -> None:
            for index in range(50):
                with file.reader(0, file.place(index), 1) as reader:
                    assert list(reader) == [bytes([index]) * 600]

        threads = [threading.Thread(target=read_each) for _ in range(6)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            shed()
        for thread in threads:
            thread.join()
        assert open_descriptors(path) <= 1
        shed()
        Path(path).unlink()
        for _ in range(2):
            with pytest.raises(SpillError, match="cannot be opened"):
                file.reader()


def test_a_file_of_several_owners_is_deleted_by_the_last_one(io_manager: IOManager) -> None:
    with io_manager.space(IDENTITY) as space:
        for owners in (1, 3):
            writer = space.writer("runs", 1024)
            writer.write_bytes(b"row")
            file = writer.finish()
            file.share(owners)
            for left in reversed(range(owners)):
                assert Path(file.paths[0]).exists()
                file.release()
                assert file.deleted == (left == 0)
            assert not Path(file.paths[0]).exists()
            file.delete()
