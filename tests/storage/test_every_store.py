"""What storage promises, held against servers of every vendor: Azurite, fake-gcs-server, moto, and s3rver."""

import errno
import random
import threading

import pytest

from engine.errors import PlanError
from engine.storage.file_systems import file_system_of
from engine.storage.store_client import use_store_settings
from engine.storage.store_output import PART_BYTES
from tests.storage.store_servers import SERVERS

CONTENT = random.Random(3).randbytes(2 * PART_BYTES + 1000)
#: names that have to be written differently in URLs, signatures and XML
UGLY = ("a b", "ü", "+", "%41", "&amp;", "q?x=1", "#1", "k=2026-01-01 00%3A00", "'single'", "~", "comma,", "日本")


@pytest.fixture(scope="module", params=list(SERVERS))
def server(request):
    with SERVERS[request.param]() as found:
        found.name = request.param
        yield found


@pytest.fixture
def root(server):
    use_store_settings(server.settings)
    yield server.root
    file_system_of(server.root).delete_tree(server.root)
    use_store_settings({})


@pytest.fixture
def files(root):
    return file_system_of(root)


def write(files, path, content):
    with files.create(path) as output:
        view = memoryview(content)
        while view:
            view = view[output.write(view) :]


def test_small_objects_are_put_read_listed_and_deleted(server, files, root):
    path = f"{root}/folder/a"
    assert files.find(path) is None and not files.is_taken(f"{root}/folder")
    files.replace(path, b"abc")
    status = files.status(path)
    assert (status.size_bytes, status.is_file, files.read(path)) == (3, True, b"abc")
    assert files.status(f"{root}/folder").is_folder
    assert [each.name for each in files.entries(root)] == ["folder"]
    with files.open_ranges(path, is_tail_wanted=True) as file:
        assert (file.size_bytes, file.read_at(1, 5)) == (3, b"bc")
    files.delete(path)
    files.delete(path)
    with pytest.raises(FileNotFoundError):
        files.read(path)


@pytest.mark.thorough
def test_names_that_are_ugly_are_listed_as_they_were_written(server, files, root):
    names = [name for name in UGLY if server.name != "s3rver" or name.isalpha()]  # which copies few others
    for name in names:
        files.replace(f"{root}/ugly/{name}/{name}", name.encode())
        files.copy(f"{root}/ugly/{name}/{name}", f"{root}/copied/{name}")
    assert sorted(each.name for each in files.entries(f"{root}/ugly")) == sorted(names)
    assert sorted(name for name, _, _ in files.below(f"{root}/copied")) == sorted(names)
    for name in names:
        assert files.read(f"{root}/copied/{name}") == name.encode()
        assert [each.path for each in files.entries(f"{root}/ugly/{name}")] == [f"{root}/ugly/{name}/{name}"]
    files.delete_tree(f"{root}/ugly")
    assert files.find(f"{root}/ugly") is None


@pytest.mark.thorough
@pytest.mark.parametrize("size", [0, 10, PART_BYTES, len(CONTENT)])
def test_objects_of_any_size_are_whole_when_they_are_closed_and_not_before(files, root, size):
    path = f"{root}/sized"
    with files.create(path) as output:
        view = memoryview(CONTENT[:size])
        while view:
            view = view[output.write(view) :]
        assert files.find(path) is None
    assert files.read(path) == CONTENT[:size]
    with files.open_ranges(path) as file:
        wanted = [(begin, min(begin + 70_000, size)) for begin in range(0, size, 3 << 20)]
        for begin, part in file.read_ranges(wanted):
            assert part == CONTENT[begin : begin + len(part)]
    with files.open_stream(path, is_buffered=True) as stream:
        assert stream.read() == CONTENT[:size]


@pytest.mark.thorough
@pytest.mark.parametrize("size", [10, len(CONTENT)])
def test_an_object_that_is_aborted_is_not_there(files, root, size):
    output = files.create(f"{root}/aborted")
    view = memoryview(CONTENT[:size])
    while view:
        view = view[output.write(view) :]
    output.abort()
    assert files.find(f"{root}/aborted") is None
    assert not [thread for thread in threading.enumerate() if thread.name == "drey-upload"]


@pytest.mark.thorough
def test_many_objects_are_listed_and_deleted_also_those_that_are_gone(files, root):
    names = [f"{number:04d}" for number in range(1100)]
    for name in names[::7]:
        files.replace(f"{root}/many/{name}", b"")
    assert sorted(name for name, _, _ in files.below(f"{root}/many")) == names[::7]
    files.delete_all(f"{root}/many/{name}" for name in names[:1000])
    assert sorted(name for name, _, _ in files.below(f"{root}/many")) == [
        name for name in names[::7] if name >= names[1000]
    ]


@pytest.mark.thorough
def test_a_state_is_replaced_as_the_version_that_was_read_alone(server, files, root):
    path = f"{root}/state"
    if server.name == "s3rver":
        with pytest.raises(PlanError, match=r"s3://data ignores the conditions of puts.*write to a store that knows"):
            files.require_conditions(f"{root}/folder")
        assert list(files.below(root)) == [], "what tried it is gone"
        return
    files.require_conditions(f"{root}/folder")
    assert list(files.below(root)) == []
    assert files.read_version(path) is None
    assert files.create_if_absent(path, b"1") and not files.create_if_absent(path, b"2")
    content, version = files.read_version(path)
    assert content == b"1" and files.put_version(path, b"3", version)
    assert not files.put_version(path, b"4", version) and files.read(path) == b"3"
    files.delete(path)
    assert not files.put_version(path, b"5", version) and files.find(path) is None


@pytest.mark.thorough
def test_of_many_writers_of_a_state_one_wins_at_a_time(server, files, root):
    if server.name == "s3rver":
        pytest.skip("it ignores conditions, and is refused")
    path, done = f"{root}/count", []
    files.replace(path, b"0")

    def count():
        for _ in range(5):
            while True:
                content, version = files.read_version(path)
                if files.put_version(path, b"%d %d" % (int(content.split()[0]) + 1, threading.get_ident()), version):
                    done.append(1)
                    break

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(done), files.read(path).split()[0]) == (20, b"20")


@pytest.mark.thorough
def test_an_object_that_is_replaced_while_it_is_read_is_an_error(files, root):
    path = f"{root}/replaced"
    write(files, path, CONTENT[:300_000])
    with files.open_ranges(path) as file:
        write(files, path, CONTENT[1:300_001])
        with pytest.raises(OSError, match=r"replaced meanwhile.*run the job again") as caught:
            file.read_at(0, 10)
    assert (caught.value.errno, caught.value.filename) == (errno.ESTALE, path)
