"""Files of servers that fsspec reaches: SFTP, FTP, and those in memory; every format, errors, passwords."""

import random
import sys

import pytest

from engine.errors import ConfigurationError, PlanError
from engine.files.paths import expand_paths
from engine.parquet.source import parquet_source
from engine.storage import fsspec_client
from engine.storage.file_systems import file_system_of
from engine.storage.fsspec_client import close_connections, fsspec_place
from engine.storage.store_client import use_store_settings
from engine.storage.store_options import bucket_settings
from tests.files.test_native_files import SOURCES, TABLE, WRITERS, rows_of, written
from tests.storage.file_servers import PASSWORD, USER, serving

CONTENT = random.Random(5).randbytes(9_000_000)


@pytest.fixture(scope="module", params=["sftp", "ftp", "memory"])
def server(request, tmp_path_factory):
    if request.param == "memory":
        pytest.importorskip("fsspec")
        yield "memory://host", {}
        return
    with serving(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture
def root(server):
    url, options = server
    use_store_settings(bucket_settings([url], options, "read_csv"))
    file_system_of(url).delete_tree(f"{url}/test")
    yield f"{url}/test"
    file_system_of(url).delete_tree(f"{url}/test")
    use_store_settings({})
    close_connections()


@pytest.fixture
def files(root):
    return file_system_of(root)


def test_files_are_written_found_read_and_deleted(files, root):
    for name in ("a.csv", "year=1/b.csv", "year=2/c ü.csv", ".hidden"):
        files.replace(f"{root}/{name}", name.encode())
    assert (files.status(f"{root}/a.csv").size_bytes, files.status(root).is_folder) == (5, True)
    assert files.find(f"{root}/none") is None and not files.is_taken(f"{root}/none/none")
    assert sorted(each.name for each in files.entries(root)) == [".hidden", "a.csv", "year=1", "year=2"]
    assert sorted(files.matching(f"{root}/*")) == [f"{root}/{name}" for name in ("a.csv", "year=1", "year=2")]
    assert list(files.matching(f"{root}/year=[2-9]/*.csv")) == [f"{root}/year=2/c ü.csv"]
    assert expand_paths(f"{root}/**", "read_csv") == tuple(
        f"{root}/{name}" for name in ("a.csv", "year=1/b.csv", "year=2/c ü.csv")
    )
    assert not files.create_if_absent(f"{root}/a.csv", b"") and files.read(f"{root}/a.csv") == b"a.csv"
    files.publish(f"{root}/a.csv", f"{root}/new/d.csv")
    assert files.read(f"{root}/new/d.csv") == b"a.csv" and not files.is_taken(f"{root}/a.csv")
    files.delete(f"{root}/new/d.csv")
    files.delete(f"{root}/new/d.csv")
    files.delete_tree(root)
    files.delete_tree(root)
    assert files.find(root) is None
    with pytest.raises(FileNotFoundError):
        files.read(f"{root}/a.csv")


@pytest.mark.thorough
def test_a_large_file_is_written_in_parts_and_read_in_ranges(files, root):
    path = f"{root}/large"
    with files.create(path) as output:
        view = memoryview(CONTENT)
        while view:
            view = view[output.write(view) :]
        assert files.written_bytes(path) == len(CONTENT)
    with pytest.raises(FileExistsError):
        files.create(path)
    with files.open_ranges(path) as file:
        assert file.read_at(5, 10) == CONTENT[5:15] and file.read_at(len(CONTENT) - 3, 9) == CONTENT[-3:]
        for begin, part in file.read_ranges([(0, 10), (8_000_000, 8_000_100)]):
            assert part == CONTENT[begin : begin + len(part)]
        files.delete(path)
        files.replace(path, b"short")
        with pytest.raises(OSError, match="replaced meanwhile"):
            file.read_at(0, 10)
    output = files.create(f"{root}/aborted")
    output.write(b"abc")
    output.abort()
    output.abort()
    assert not files.is_taken(f"{root}/aborted")


@pytest.mark.thorough
@pytest.mark.parametrize("ending", WRITERS)
def test_every_format_is_written_and_read(files, root, ending):
    path = f"{root}/formats/a.{ending}"
    written(WRITERS[ending](path))
    source = (lambda place: parquet_source(place)[0]) if ending == "parquet" else SOURCES[ending.removesuffix(".gz")]
    for place in (path, f"{root}/formats", f"{root}/*/a.*"):
        assert rows_of(source(place)) == TABLE.to_pylist()


def test_errors_name_the_place_and_what_to_do_and_no_password(tmp_path, monkeypatch):
    monkeypatch.setattr(fsspec_client, "_PAUSE_S", 0.01)
    for scheme in ("sftp", "ftp"):
        with serving(scheme, tmp_path) as (root, options):
            use_store_settings(bucket_settings([root], {**options, "password": "hush-wrong"}, "read_csv"))
            with pytest.raises(OSError, match=r"refuses the login .* pass storage_options=") as caught:
                file_system_of(root).read(f"{root}/a")
            assert "hush" not in str(caught.value) and caught.value.filename == f"{root}/a"
        with pytest.raises(OSError, match=r"nothing listens at|cannot be reached"):
            file_system_of(root).read(f"{root}/a")
    close_connections()
    use_store_settings({})


def test_a_connection_that_broke_off_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(fsspec_client, "_PAUSE_S", 0.01)
    with serving("ftp", tmp_path) as (root, options):
        use_store_settings(bucket_settings([root], options, "read_csv"))
        files = file_system_of(root)
        files.replace(f"{root}/a", b"abc")
        for waiting in fsspec_client._idle.values():
            for system in waiting:
                system.ftp.sock.close()
        assert files.read(f"{root}/a") == b"abc"
    close_connections()
    use_store_settings({})


def test_a_package_that_is_missing_is_named(monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setitem(sys.modules, "smbprotocol", None)
    monkeypatch.setitem(sys.modules, "smbclient", None)
    with pytest.raises(PlanError, match=r"smb:// needs another package.*smbprotocol"):
        file_system_of("smb://host/a").find("smb://host/a")
    monkeypatch.setitem(sys.modules, "fsspec.registry", None)
    with pytest.raises(PlanError, match=r"sftp:// needs the package fsspec.*pip install fsspec"):
        file_system_of("sftp://host/a").find("sftp://host/a")


def test_options_are_of_a_scheme_and_passwords_belong_there():
    with pytest.raises(PlanError, match="a password does not belong into a path") as caught:
        fsspec_place(f"sftp://{USER}:{PASSWORD}@host/a")
    assert PASSWORD not in str(caught.value)
    assert fsspec_place("sftp://me@host:22/a").root == "sftp://me@host:22"
    use_store_settings({"storage.fsspec.options": "{'sftp'"})
    with pytest.raises(ConfigurationError, match="is no JSON of options by scheme"):
        file_system_of("memory://host/a").find("memory://host/a")
    with pytest.raises(ConfigurationError, match="texts, numbers, True and False"):
        bucket_settings(["sftp://host/a"], {"key": object()}, "read_csv")
    use_store_settings({})
