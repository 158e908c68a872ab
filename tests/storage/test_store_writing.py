"""Objects that are written: in parts, with conditions, and hidden from listings as long as they do not count."""

import errno
import random
import threading
import urllib.request

import pytest

from engine.errors import PlanError
from engine.storage.file_systems import file_system_of
from engine.storage.store_folder import ADDING, IDLE, REMOVING, STATE_NAME, FolderState, decode_state, encode_state
from engine.storage.store_output import PART_BYTES

CONTENT = random.Random(3).randbytes(2 * PART_BYTES + 1000)


@pytest.fixture
def files():
    return file_system_of("s3://data")


def uploads_of(store):
    with urllib.request.urlopen(f"{store.endpoint}/{store.bucket}?uploads", timeout=5) as answer:
        return answer.read().count(b"<UploadId>")


def write_all(output, content):
    view = memoryview(content)
    while view:
        view = view[output.write(view[:3_000_000]) :]


@pytest.mark.parametrize("size", [0, 10, PART_BYTES, len(CONTENT)])
def test_an_object_is_there_when_it_is_closed_and_not_before(store, files, size):
    path = f"s3://data/written/{size}"
    with files.create(path) as output:
        write_all(output, CONTENT[:size])
        assert output.tell() == files.written_bytes(path) == size
        assert files.find(path) is None
    assert files.read(path) == CONTENT[:size] and files.written_bytes(path) == size
    output.close()


@pytest.mark.parametrize("is_forgotten", [False, True])
@pytest.mark.parametrize("size", [10, len(CONTENT)])
def test_an_object_that_is_aborted_or_forgotten_leaves_neither_an_object_nor_parts_nor_a_thread(
    store, files, size, is_forgotten
):
    output = files.create("s3://data/aborted")
    write_all(output, CONTENT[:size])
    if is_forgotten:
        del output
    else:
        output.abort()
        output.abort()
        output.close()
    assert files.find("s3://data/aborted") is None and uploads_of(store) == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "drey-upload"]


def test_what_the_store_refuses_is_told_where_it_is_written(store, files):
    for size in (10, len(CONTENT)):
        output = files.create("s3://nobucket/x")
        with pytest.raises(OSError, match="there is no such bucket") as caught:
            write_all(output, CONTENT[:size])
            output.close()
        assert (caught.value.errno, caught.value.filename) == (errno.ENXIO, "s3://nobucket/x")
    with pytest.raises(PlanError, match="are read and not written"):
        file_system_of("https://host/x").create("https://host/x")


def test_a_small_object_is_replaced_as_the_version_that_was_read_alone(store, files):
    path = "s3://data/state"
    assert files.read_version(path) is None
    assert files.create_if_absent(path, b"1") and files.put_version(path, b"1", None), "its own, done before"
    assert not files.create_if_absent(path, b"2") and files.read(path) == b"1"
    content, version = files.read_version(path)
    assert content == b"1" and files.put_version(path, b"2", version)
    assert not files.put_version(path, b"3", version) and files.read(path) == b"2"
    files.replace(path, b"4")
    assert files.read(path) == b"4"
    files.delete(path)
    files.delete(path)
    assert not files.put_version(path, b"5", version) and files.find(path) is None


def test_objects_are_copied_published_and_deleted_with_all_below(store, files):
    store.put("tree/a", b"a")
    files.copy("s3://data/tree/a", "s3://data/tree/b/c")
    files.publish("s3://data/tree/a", "s3://data/tree/b/d")
    assert sorted(name for name, _, _ in files.below("s3://data/tree")) == ["b/c", "b/d"]
    with pytest.raises(FileNotFoundError):
        files.copy("s3://data/tree/none", "s3://data/tree/x")
    with pytest.raises(PlanError, match="not copied to another store"):
        files.copy("s3://data/tree/b/c", "s3://other/x")
    files.delete_tree("s3://data/tree")
    files.delete_tree("s3://data/tree")
    assert list(files.below("s3://data/tree")) == []


def test_a_listing_leaves_out_what_does_not_count(store, files):
    for name in ("k=1/old.csv", "k=1/new.csv", "k=3/new.csv"):
        store.put(f"listed/{name}", b"x")
    folder = "s3://data/listed"
    for state, expected in (
        (FolderState(ADDING, 1, "job", 0, ("k=1/new.csv", "k=3/new.csv")), ["k=1/old.csv"]),
        (FolderState(REMOVING, 2, "job", 0, (), ("k=1/old.csv",)), ["k=1/new.csv", "k=3/new.csv"]),
        (FolderState(IDLE, 3, "job"), ["k=1/new.csv", "k=1/old.csv", "k=3/new.csv"]),
    ):
        files.replace(f"{folder}/{STATE_NAME}", encode_state(state))
        folders = sorted({name.partition("/")[0] for name in expected})
        assert sorted(each.name for each in files.entries(folder)) == [STATE_NAME, *folders]
        walked = [f"{place}/{name}" for place, _, names in files.walk(folder) for name in names]
        assert sorted(path.removeprefix(f"{folder}/") for path in walked) == [STATE_NAME, *expected]
        found = sorted(files.matching(f"{folder}/k=*/*.csv"))
        assert found == [f"{folder}/{name}" for name in expected]
        inside = [name for name in expected if name.startswith("k=1/")]
        assert sorted(each.path for each in files.entries(f"{folder}/k=1")) == [f"{folder}/{name}" for name in inside]
        assert sorted(files.matching(f"{folder}/k=1/*")) == [f"{folder}/{name}" for name in inside]


def test_an_object_of_that_name_that_is_none_of_ours_hides_nothing():
    assert decode_state(b"\xff") == decode_state(b"[]") == FolderState()
