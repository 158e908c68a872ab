"""Threads that spill, store results and read them again, in a process whose calls fail (``faulty_io.h``).

    python -m tests.iomanager.faulty_job FOLDER SEED [DESCRIPTORS]

Each round is right to the last byte or ends with an error that says what the system said. It prints how many of both
there were.
"""

from __future__ import annotations

import random
import resource
import sys
import threading
from collections import Counter
from pathlib import Path

from engine.errors import CorruptBlockError, DiskFullError, SpillError
from engine.exchange.buffer_pool import unpooled_buffer
from engine.exchange.partition_file import PartitionFile, partition_identity
from engine.ids import ExecutionAttemptId, IntermediateDataSetId, JobVertexId, ResultPartitionId
from engine.iomanager.io_manager import IOManager
from engine.iomanager.open_files import open_file_count, open_file_limit
from engine.iomanager.spill_space import SpillSpace
from tests.iomanager.conftest import IDENTITY

VERTEX = JobVertexId(0)
TASKS = 4
ROUNDS = 12


def spilled(space: SpillSpace, chosen: random.Random) -> bool:
    """Write blocks of all sizes to a file, and read some of them beside each other."""
    writer = space.writer("run", 2048)
    wanted = []
    marks = []
    try:
        for _ in range(chosen.randrange(1, 60)):
            rows = chosen.randbytes(chosen.randrange(1, 40)) * chosen.randrange(1, 120)
            marks.append(writer.mark_block())
            writer.write_bytes(rows)
            wanted.append(rows)
        file = writer.finish()
    except SpillError as error:
        return refused(error)
    try:
        with file.reader(chosen.randrange(4)) as reader, file.reader(0, file.place(marks[-1])) as other:
            found = list(reader)
            assert next(other) == found[-1]
        assert b"".join(found) == b"".join(wanted)
    except SpillError as error:
        return refused(error)
    finally:
        file.delete()
    return True


def stored(folder: Path, chosen: random.Random) -> bool:
    """Write the file of a result, and read it again."""
    partition = ResultPartitionId(IntermediateDataSetId(VERTEX, 0), ExecutionAttemptId.create(VERTEX, 0, 0))
    file = None
    wanted: list[list[bytes]] = [[] for _ in range(5)]
    try:
        file = PartitionFile(folder / f"{partition}.shuffle.data", partition_identity(partition), 5)
        for _ in range(chosen.randrange(1, 40)):
            subpartition, page = chosen.randrange(5), chosen.randbytes(chosen.randrange(1, 5000))
            file.append(subpartition, [unpooled_buffer(memoryview(page))])
            wanted[subpartition].append(page)
        file.finish()
        for subpartition, pages in enumerate(wanted):
            found = [
                bytes(memoryview(buffer.segment)[: buffer.size])
                for entry in file.entries[subpartition]
                for buffer in file.read(subpartition, entry)
            ]
            assert found == pages
    except SpillError as error:
        return refused(error)
    finally:
        if file is not None:
            file.delete()
    return True


def valued(space: SpillSpace, chosen: random.Random) -> bool:
    """Write wide values, and find them again."""
    values = [chosen.randbytes(chosen.randrange(1, 700_000)) for _ in range(3)]
    try:
        for number, value in enumerate(values):
            space.write_value(memoryview(value), number)
        for number, value in enumerate(values):
            place = space.find_value(memoryview(value), number)
            assert place is not None or FAULTS_ARE_ERRORS
    except SpillError as error:
        return refused(error)
    return True


def refused(error: SpillError) -> bool:
    """Whether a round ended as it may: the system said no, and nothing else is wrong."""
    assert not isinstance(error, CorruptBlockError), error
    assert FAULTS_ARE_ERRORS, error
    said = "Too many open files" in str(error) or "Disk quota exceeded" in str(error)
    assert said or isinstance(error, DiskFullError), error
    return False


def main() -> None:
    """Run rounds in threads."""
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    if len(sys.argv) > 3:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[3]), int(sys.argv[3])))
    outcomes: Counter[bool] = Counter()
    failures: list[BaseException] = []

    def task(number: int) -> None:
        chosen = random.Random(seed * 100 + number)
        try:
            for _ in range(ROUNDS):
                with manager.space(IDENTITY) as space:
                    outcomes.update((spilled(space, chosen), spilled(space, chosen), valued(space, chosen)))
                outcomes[stored(folder, chosen)] += 1
        except BaseException as error:
            failures.append(error)
            raise

    with IOManager([str(folder / "a"), str(folder / "b")]) as manager:
        threads = [threading.Thread(target=task, args=(number,)) for number in range(TASKS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert open_file_count() <= open_file_limit() + TASKS
    left = [path for path in folder.rglob("*") if path.is_file()]
    assert not left, left
    assert not failures
    print(f"right {outcomes[True]} refused {outcomes[False]}")


FAULTS_ARE_ERRORS = len(sys.argv) > 4
if __name__ == "__main__":
    main()
