"""The file system of this machine, and which file system a path belongs to."""

import errno
import multiprocessing
import os
import subprocess
from pathlib import Path

import pytest

from engine.errors import PlanError
from engine.storage import file_systems, local
from engine.storage.file_system import NO_DESCRIPTOR
from engine.storage.file_systems import LOCAL, file_system_of, folders_of
from engine.storage.temporary_files import temporary_path


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "file")


def write(path, content):
    stream = LOCAL.create(path)
    stream.write(content)
    stream.close()


def test_a_file_that_is_written_in_parts_is_read_in_ranges(path):
    stream = LOCAL.create(path)
    for part in (b"abc", b"defg"):
        assert stream.write(part) == len(part)
    assert stream.tell() == 7
    stream.close()
    stream.abort()  # it is closed: nothing happens
    assert LOCAL.read(path) == b"abcdefg"
    file = LOCAL.open_ranges(path)
    assert (file.size_bytes, file.read_at(2, 3), file.read_at(5, 100)) == (7, b"cde", b"fg")
    assert os.pread(file.descriptor, 1, 0) == b"a"
    file.close()
    file.close()
    assert file.descriptor == NO_DESCRIPTOR
    with LOCAL.open_stream(path) as raw, LOCAL.open_stream(path, is_buffered=True) as buffered:
        assert raw.seek(3) == 3
        assert raw.read() == b"defg"
        assert buffered.readline() == b"abcdefg"


def test_a_file_that_is_there_is_not_created_again_and_an_aborted_one_is_gone(path):
    write(path, b"old")
    with pytest.raises(FileExistsError):
        LOCAL.create(path)
    stream = LOCAL.create(f"{path}.new")
    stream.write(b"half")
    stream.abort()
    assert stream.closed
    assert not LOCAL.is_taken(f"{path}.new")


def test_a_published_file_has_its_name_alone(path):
    write(f"{path}.staged", b"new")
    write(path, b"old")
    LOCAL.publish(f"{path}.staged", path)
    assert LOCAL.read(path) == b"new"
    assert LOCAL.find(f"{path}.staged") is None
    with pytest.raises(FileNotFoundError):
        LOCAL.publish(f"{path}.staged", path)


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_small_file_is_created_once_and_replaced_whole(tmp_path, path, is_durable):
    assert LOCAL.create_if_absent(path, b"first", is_durable)
    assert not LOCAL.create_if_absent(path, b"second", is_durable)
    assert LOCAL.read(path) == b"first"
    LOCAL.replace(path, b"third", is_durable)
    assert LOCAL.read(path) == b"third"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_without_hard_links_a_small_file_is_created_all_the_same(path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(local.os, "link", refuse)
    assert LOCAL.create_if_absent(path, b"first")
    assert not LOCAL.create_if_absent(path, b"second")
    assert LOCAL.read(path) == b"first"


def _create(path, number, created):
    if LOCAL.create_if_absent(path, b"%d" % number):
        created.put(number)


def test_of_processes_that_create_one_file_one_does(path):
    created = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=_create, args=(path, number, created)) for number in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    winner = created.get(timeout=10)
    assert created.empty()
    assert LOCAL.read(path) == b"%d" % winner


def test_a_status_has_another_version_once_the_content_is_another(path):
    write(path, b"abc")
    first = LOCAL.status(path)
    assert (first.size_bytes, first.is_file, first.is_folder) == (3, True, False)
    assert LOCAL.status(path).version == first.version
    LOCAL.replace(path, b"abd")
    assert LOCAL.status(path).version != first.version


def test_what_is_not_there_is_found_as_none_and_has_no_status(tmp_path, path):
    write(path, b"")
    for absent in (f"{path}.other", f"{path}/inside", "/nul\0l"):
        assert LOCAL.find(absent) is None
        assert not LOCAL.is_taken(absent)
    with pytest.raises(FileNotFoundError) as error:
        LOCAL.status(f"{path}.other")
    assert error.value.filename == f"{path}.other"
    (tmp_path / "link").symlink_to("nowhere")
    assert LOCAL.is_taken(str(tmp_path / "link"))
    assert LOCAL.find(str(tmp_path / "link")) is None


def test_a_folder_is_listed_with_sizes_and_deleted_whole(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(b"12345")
    (folder / "inner").mkdir()
    (folder / "inner" / "b").touch()
    (folder / "link").symlink_to("inner")
    found = {each.name: each for each in LOCAL.entries(str(folder))}
    assert {name: (each.is_folder, each.is_file, each.is_link) for name, each in found.items()} == {
        "a": (False, True, False),
        "inner": (True, False, False),
        "link": (True, False, True),
    }
    assert (found["a"].size_bytes, found["a"].path) == (5, str(folder / "a"))
    assert sorted(LOCAL.matching(f"{folder}/*/b")) == [str(folder / "inner/b"), str(folder / "link/b")]
    assert [names for _, names, _ in LOCAL.walk(str(folder))] == [["inner", "link"], []]
    LOCAL.delete_tree(str(folder / "link"))
    assert (folder / "inner" / "b").exists()
    LOCAL.delete_tree(str(folder))
    LOCAL.delete_tree(str(folder))
    LOCAL.delete(str(folder))
    assert not folder.exists()
    assert LOCAL.free_bytes(str(tmp_path)) > 0


class Store:
    """A file system without folders."""

    schemes = ("mem",)
    folders = None


def test_a_path_belongs_to_the_file_system_of_its_scheme(monkeypatch):
    store = Store()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (LOCAL, store))
    assert file_system_of("mem://bucket/a") is store
    assert file_system_of("MEM://bucket/a") is store
    for path in ("/data/mem://a", "data/a", "other://a", "file:///a"):
        assert file_system_of(path) is LOCAL
    assert folders_of("/data/a", "it") is LOCAL.folders
    with pytest.raises(PlanError, match="no folders that can be renamed, and a lock needs them"):
        folders_of("mem://bucket/a", "a lock")


def test_temporary_files_of_processes_that_have_ended_are_removed_and_no_others(tmp_path):
    place = os.fspath(tmp_path / "state.json")
    own = Path(temporary_path(place))
    machine, _, number = own.suffix[1:].split("-")
    strangers = [tmp_path / ".state.json.0000abcd", tmp_path / f".{int(machine, 16) ^ 1:08x}-00000001-{number}"]
    ended = subprocess.Popen(["true"])
    ended.wait()
    for path in (own, *strangers, tmp_path / f".state.json.{machine}-{ended.pid:08x}-{number}"):
        path.write_bytes(b"")
    assert LOCAL.folders.remove_left(os.fspath(tmp_path))
    assert sorted(tmp_path.iterdir()) == sorted([own, *strangers])
    assert not LOCAL.folders.remove_left(os.fspath(tmp_path))
    assert not LOCAL.folders.remove_left(place)
