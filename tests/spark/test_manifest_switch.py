"""Writes to a record data set at once, killed, aborted: a reader sees the old rows or the new ones."""

import multiprocessing
import os
import signal
import time
from contextlib import suppress

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from pathlib import Path

from engine import Environment
from engine.connectors.records_manifest import read_manifest
from engine.connectors.records_parts import WrittenPart
from engine.connectors.records_writer import RecordsWriter
from engine.errors import PlanError, SchemaError
from engine.spark import manifest_switch
from engine.spark.manifest_switch import Owner, Promises, abort_write, begin_write, commit_write
from engine.storage import local
from engine.storage.temporary_files import temporary_path

SCHEMA = pa.schema({"k": pa.int64(), "t": pa.string()})


def part_of(staging, numbers, name="attempt-00000.parquet", schema=SCHEMA):
    columns = {"k": pa.array(numbers, pa.int64()), "t": pa.array([f"t{number}" for number in numbers], pa.string())}
    writer = RecordsWriter(schema, str(staging / name))
    writer.write(pa.record_batch([columns[field.name].cast(field.type) for field in schema], schema=schema))
    rows, size_bytes, statistics = writer.finish()
    return WrittenPart(name, rows, size_bytes, statistics)


def write(folder, numbers, *, overwrite=False):
    staging = begin_write(folder, SCHEMA, overwrite=overwrite)
    commit_write(folder, staging, SCHEMA, [part_of(staging, numbers)], Promises(), overwrite=overwrite)


def numbers_of(folder):
    with Environment() as env:
        return sorted(row.k for row in env.read_records(folder).collect())


def files_of(folder):
    return {path.name for path in folder.iterdir() if path.suffix == ".parquet"}


def test_rows_are_appended_and_replaced(tmp_path):
    folder = tmp_path / "set"
    write(folder, [1, 2])
    write(folder, [3])
    assert numbers_of(folder) == [1, 2, 3]
    write(folder, [9], overwrite=True)
    assert numbers_of(folder) == [9]
    assert read_manifest(folder).row_count == 1


def test_what_a_manifest_says_after_an_append_is_true_of_both(tmp_path):
    folder = tmp_path / "set"
    write(folder, [2] * 450 + list(range(50)))
    write(folder, list(range(100, 600)))
    column = read_manifest(folder).columns["k"]
    assert (column.min, column.max, column.null_count) == (0, 599, 0)
    assert column.distinct_estimate == pytest.approx(550, rel=0.05)
    assert dict(column.heavy_keys) == {"2": pytest.approx(0.45, abs=0.01)}
    write(folder, [2, 3])
    assert read_manifest(folder).columns["k"].distinct_estimate == column.distinct_estimate


def test_nothing_is_there_before_the_commit_and_nothing_after_an_abort(tmp_path):
    folder = tmp_path / "made" / "too" / "set"
    staging = begin_write(folder, SCHEMA, overwrite=False)
    part_of(staging, [1])
    with pytest.raises(PlanError, match="not a record data set"):
        read_manifest(folder)
    abort_write(staging)
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_goes_on_after_the_abort_leaves_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "set"
    staging = begin_write(folder, SCHEMA, overwrite=False)
    remove = local.shutil.rmtree

    def remove_while_a_task_writes(path, **options):
        path = Path(path)
        with suppress(FileNotFoundError):
            for file in list(path.iterdir()):
                file.unlink()
        with suppress(FileNotFoundError):
            (staging / "late").write_bytes(b"")
        with suppress(OSError):
            path.rmdir()

    monkeypatch.setattr(local.shutil, "rmtree", remove_while_a_task_writes)
    abort_write(staging)
    monkeypatch.setattr(local.shutil, "rmtree", remove)
    assert not folder.exists()


def test_an_abort_leaves_folders_that_were_there_or_are_in_use(tmp_path):
    (tmp_path / "empty").mkdir()
    abort_write(begin_write(tmp_path / "empty", SCHEMA, overwrite=False))
    first = begin_write(tmp_path / "set", SCHEMA, overwrite=False)
    write(tmp_path / "set", [1])
    abort_write(first)
    assert numbers_of(tmp_path / "set") == [1]
    assert (tmp_path / "empty").is_dir()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PlanError, match="file/set cannot be written to: Not a directory"):
        begin_write(tmp_path / "file" / "set", SCHEMA, overwrite=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_files_of_attempts_that_did_not_win_are_never_read(tmp_path):
    folder = tmp_path / "set"
    staging = begin_write(folder, SCHEMA, overwrite=False)
    winner = part_of(staging, [1], "a-00000.parquet")
    part_of(staging, [1], "b-00000.parquet")
    commit_write(folder, staging, SCHEMA, [winner], Promises(), overwrite=False)
    assert numbers_of(folder) == [1]
    assert len(files_of(folder)) == 1


def test_a_replaced_data_set_stays_readable_for_who_has_begun(tmp_path):
    folder = tmp_path / "set"
    write(folder, [1])
    old = read_manifest(folder).files[0].name
    write(folder, [2], overwrite=True)
    assert pq.read_table(folder / old).num_rows == 1
    write(folder, [3], overwrite=True)
    assert old not in files_of(folder)
    assert len(files_of(folder)) == 2


def _killed_at(folder, call):
    """Replace all rows, and die of SIGKILL at a call of the commit."""

    def die(*_args, **_kwargs):
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(manifest_switch, call, die)
    write(folder, [7, 8], overwrite=True)


@pytest.mark.parametrize("call", ["merged_manifest", "write_manifest", "_remove_leftovers"])
def test_a_commit_that_is_killed_leaves_the_old_rows_or_the_new_ones(tmp_path, call):
    folder = tmp_path / "set"
    write(folder, [1])
    process = multiprocessing.get_context("fork").Process(target=_killed_at, args=(folder, call))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert numbers_of(folder) == ([7, 8] if call == "_remove_leftovers" else [1])
    write(folder, [5])
    assert 5 in numbers_of(folder)
    write(folder, [6], overwrite=True)
    write(folder, [4], overwrite=True)
    listed = {file.name for file in read_manifest(folder).files}
    assert len(files_of(folder) - listed) == 1
    assert not [path for path in folder.iterdir() if path.name.startswith(".drey-write")]


def _write_rows(folder, first):
    for number in range(first, first + 5):
        write(folder, [number])


def test_writes_at_once_all_arrive(tmp_path):
    folder = tmp_path / "set"
    processes = [multiprocessing.get_context("fork").Process(target=_write_rows, args=(folder, n)) for n in (0, 5, 10)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert numbers_of(folder) == list(range(15))


def test_a_manifest_that_never_got_its_name_is_no_other_programs_and_goes_with_the_next_write(tmp_path):
    folder = tmp_path / "set"
    write(folder, [1])
    made = Path(temporary_path("_manifest.json")).name
    for name in (made, "._manifest.json.0123456789abcdef", "._manifest.json.tmp"):
        (folder / name).write_bytes(b"half")
    write(folder, [2])
    assert numbers_of(folder) == [1, 2]
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_write_that_goes_on_is_not_taken_for_a_leftover(tmp_path):
    folder = tmp_path / "set"
    staging = begin_write(folder, SCHEMA, overwrite=False)
    part = part_of(staging, [1])
    write(folder, [2], overwrite=True)
    commit_write(folder, staging, SCHEMA, [part], Promises(), overwrite=False)
    assert numbers_of(folder) == [1, 2]


def test_a_write_of_another_host_is_a_leftover_after_a_day(tmp_path):
    folder = tmp_path / "set"
    staging = begin_write(folder, SCHEMA, overwrite=False)
    (staging / "owner.json").write_bytes(msgspec.json.encode(Owner("elsewhere", 1, 1.0)))
    write(folder, [1])
    assert staging.exists()
    os.utime(staging, (time.time() - 90_000,) * 2)
    write(folder, [2])
    assert not staging.exists()


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "letter.txt").write_text("dear")
    with pytest.raises(PlanError, match=r"holds 'letter.txt', which is no part of a record data set"):
        begin_write(tmp_path / "set", SCHEMA, overwrite=True)
    with pytest.raises(PlanError, match="is a file"):
        begin_write(tmp_path / "set" / "letter.txt", SCHEMA, overwrite=True)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"k": pa.int64()}, "the rows have no column 't'"),
        ({"k": pa.int64(), "t": pa.string(), "u": pa.int8()}, "it has no column 'u'"),
        ({"k": pa.int32(), "t": pa.string()}, "column 'k' is int64 there and int32 in the rows"),
        ({"t": pa.string(), "k": pa.int64()}, r"in the order \['k', 't'\]"),
    ],
)
def test_other_columns_are_not_appended(tmp_path, columns, said):
    folder = tmp_path / "set"
    write(folder, [1])
    with pytest.raises(SchemaError, match=said):
        begin_write(folder, pa.schema(columns), overwrite=False)
    begin_write(folder, pa.schema(columns), overwrite=True)


def test_a_folder_that_was_replaced_meanwhile_takes_no_rows(tmp_path):
    folder = tmp_path / "set"
    write(folder, [1])
    staging = begin_write(folder, SCHEMA, overwrite=False)
    part = part_of(staging, [2])
    folder.rename(tmp_path / "old")
    write(folder, [3])
    with pytest.raises(PlanError, match="was replaced while rows were being written"):
        commit_write(folder, staging, SCHEMA, [part], Promises(), overwrite=False)
    assert numbers_of(folder) == [3]
