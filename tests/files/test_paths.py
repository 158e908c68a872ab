"""Files, folders and globs become the files that are read, each once."""

import os
import shutil

import pyarrow as pa
import pytest

from engine import Environment
from engine.errors import PlanError
from engine.files.hive import hive_files
from engine.files.paths import expand_paths, local_path
from engine.formats.output_check import check_outputs
from engine.graph.source_spec import SinkSpec


@pytest.fixture
def table(tmp_path):
    for name in ("day=1/a.csv", "day=1/_SUCCESS", "day=2/b.csv", "day=2/.b.csv.crc"):
        path = tmp_path / "table" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n")
    return tmp_path / "table"


def names(path):
    return [path.rpartition("/")[2] for path in expand_paths(path, "read_csv")]


@pytest.mark.parametrize("pattern", ["**", "*", "*/*", "**/*.csv", "day=*", "day=[12]/"])
def test_a_glob_that_matches_folders_and_what_is_in_them_gives_each_file_once(table, pattern):
    assert names(table / pattern) == ["a.csv", "b.csv"]


def test_a_folder_of_folders_is_told_how_to_be_read(table):
    with pytest.raises(PlanError, match=r"holds no files, only folders such as day=1: .*'.*/table/\*\*' reads the"):
        expand_paths(table, "read_csv")
    (table.parent / "empty").mkdir()
    with pytest.raises(PlanError, match=r"holds no files; an output with partition_by= and without rows is such"):
        expand_paths(table.parent / "empty", "read_csv")


def test_rows_in_folders_beside_a_file_are_not_left_out_silently(table):
    (table / "loose.csv").write_text("2\n")
    with pytest.raises(PlanError, match=r"file loose.csv beside the folder day=1/ with files in it \(day=1/a.csv\)"):
        expand_paths(table, "read_csv")
    assert names(table / "*.csv") == ["loose.csv"]
    assert sorted(names(table / "**")) == ["a.csv", "b.csv", "loose.csv"]
    for hidden in (".git", "_old", "empty/_hidden"):
        (table / hidden).mkdir(parents=True)
        (table / hidden / "c.csv").write_text("3\n")
    for name in ("day=1", "day=2"):
        (table / name).rename(table / f"_{name[-1]}")
    assert names(table) == ["loose.csv"]


def test_what_begins_with_a_line_below_is_data_where_it_is_named_after_a_value(tmp_path):
    for name in ("_day=1/a.csv", "_day=2/b.csv", "_temporary/0/c.csv", ".day=3/d.csv"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("1\n")
    assert names(tmp_path / "**") == names(tmp_path / "_day=*") == ["a.csv", "b.csv"]
    assert hive_files(tmp_path, "read_csv", None).keys == ("_day",)
    (tmp_path / "loose.csv").write_text("2\n")
    with pytest.raises(PlanError, match=r"loose.csv beside the folder _day=1/ with files in it"):
        expand_paths(tmp_path, "read_csv")


def test_a_name_that_is_no_utf8_is_named(tmp_path):
    for place in (b"k=\xff/a.csv", b"b/\xfe.csv"):
        path = os.path.join(os.fsencode(tmp_path), place)  # noqa: PTH118
        os.makedirs(os.path.dirname(path))  # noqa: PTH103, PTH120
        shutil.copy(__file__, path)
    for path in (tmp_path / "b", tmp_path / "*" / "*.csv", tmp_path / "k=\udcff"):
        with pytest.raises(
            PlanError, match=r"read_csv: the name b'.*\\xf[ef].*' is not UTF-8; rename the file or folder"
        ):
            expand_paths(path, "read_csv")
    shutil.rmtree(tmp_path / "b")
    with pytest.raises(PlanError, match="is not UTF-8"):
        hive_files(tmp_path, "read_csv", None)
    with pytest.raises(PlanError, match=r"write_csv: the name b'/a\\xff' is not UTF-8"):
        local_path("/a\udcff", "write_csv")


@pytest.mark.parametrize("begin", ["file://", "file:", "file://localhost", "FILE://"])
def test_a_url_of_a_file_is_a_path(table, begin):
    (table / "two words.csv").write_text("1\n")
    assert local_path(f"{begin}{table}/two%20words.csv", "read_csv") == str(table / "two words.csv")
    assert names(f"{begin}{table}/*/*.csv") == ["a.csv", "b.csv"]
    assert local_path((table / "ü *").as_uri(), "write_csv") == str(table / "ü *")


def test_urls_of_other_places_are_refused_by_name(table):
    with pytest.raises(
        PlanError, match=r"^read_csv\('gopher://bucket/a.csv'\): gopher:// is no place .* copy the data"
    ):
        expand_paths("gopher://bucket/a.csv", "read_csv")
    with pytest.raises(PlanError, match=r"'server' is another host; .* file:///"):
        expand_paths("file://server/a.csv", "read_csv")


def test_no_path_is_not_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").touch()
    with Environment() as env, pytest.raises(PlanError, match=r"path is empty; the current folder is '\.'"):
        env.from_arrow(pa.table({"n": [1]})).write_parquet("", overwrite=True)
        env.execute()
    assert (tmp_path / "mine.txt").exists()


def test_a_path_that_looks_like_a_url_and_exists_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    (tmp_path / "s3:" / "a.csv").write_text("1\n")
    assert local_path("s3:/a.csv", "read_csv") == str(tmp_path / "s3:" / "a.csv")


def test_a_removed_current_folder_is_named_where_a_path_needs_it(tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(PlanError, match=r"read_csv\('x.csv'\): the current folder was removed"):
        local_path("x.csv", "read_csv")
    assert local_path(tmp_path, "read_csv") == str(tmp_path)
    check_outputs([SinkSpec("csv", str(tmp_path / "out"), False)])


def test_paths_of_a_list_that_lead_to_one_file_give_it_once(table):
    paths = [table / "day=2/b.csv", table / "day=*", table / "day=1" / ".." / "day=2", table / "day=1/a.csv"]
    assert names(paths) == ["b.csv", "a.csv"]
    found = hive_files([table, table / "day=1/a.csv"], "read_csv", is_asked=True)
    assert found.values == (("1",), ("2",))


def test_links_are_not_followed_by_two_stars(tmp_path):
    for folder in ("a", "b/c", ".hidden"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.csv").write_text("1")
        (tmp_path / folder / "up").symlink_to("..")
    (tmp_path / "a" / "link.csv").symlink_to("x.csv")
    inside = [tmp_path / "a" / "link.csv", tmp_path / "a" / "x.csv", tmp_path / "b" / "c" / "x.csv"]
    assert expand_paths(tmp_path / "**", "read_csv") == tuple(map(str, inside))
    assert expand_paths(tmp_path / "**" / "x.csv", "read_csv") == tuple(map(str, inside[1:]))
    assert expand_paths(tmp_path / "*" / "**" / "c" / "*.csv", "read_csv") == (str(inside[2]),)
    # a link that is named is gone into
    (tmp_path / "other").symlink_to("b")
    assert expand_paths(tmp_path / "other" / "**", "read_csv") == (str(tmp_path / "other" / "c" / "x.csv"),)
    (tmp_path / "[odd]" / "d").mkdir(parents=True)
    (tmp_path / "[odd]" / "d" / "y.csv").write_text("1")
    assert expand_paths(tmp_path / "**" / "y.csv", "read_csv") == (str(tmp_path / "[odd]" / "d" / "y.csv"),)
