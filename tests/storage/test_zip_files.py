"""Members of zip archives, read as files: against zipfile and the same files outside of one."""

import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.errors import PlanError
from engine.files.paths import expand_paths, local_path
from engine.storage.file_systems import file_system_of

ROWS = 30_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("zip")
    (found / "m.csv").write_text("id,t\n" + "".join(f'{number},"x\ny"\n' for number in range(ROWS)))
    pq.write_table(pa.table({"x": list(range(1000))}), found / "p.parquet", row_group_size=100)
    with zipfile.ZipFile(found / "a.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.write(found / "m.csv", "m.csv")
        made.write(found / "p.parquet", "p.parquet", zipfile.ZIP_STORED)
        made.writestr("d/n.csv", "id,t\n1,a\n")
        made.writestr("d/o.csv", "id,t\n2,b\n")
        made.writestr("d/_hidden", "")
        made.writestr("years/year=2024/q.csv", "id\n3\n")
    return found


def test_members_are_read_by_several_subtasks_as_files_are(folder):
    with Environment(config={"parallelism.default": 4}) as env:
        for path in (f"zip://{folder}/a.zip!/m.csv", f"zip://m.csv::{folder}/a.zip"):
            found = env.read_csv(path, header=True)
            assert (
                found.to_arrow()
                .sort_by("id")
                .equals(env.read_csv(folder / "m.csv", header=True).to_arrow().sort_by("id"))
            )
        parquet = env.read_parquet(f"zip://{folder}/a.zip!/p.parquet")
        assert sorted(parquet.to_arrow()["x"].to_pylist()) == list(range(1000))
        assert env.sql(f"SELECT t FROM 'zip://{folder}/a.zip!/d/n.csv'").to_arrow().to_pydict() == {"t": ["a"]}
        assert env.read_csv(f"zip://{folder}/a.zip!/years", header=True).collect() == [(3, 2024)]


def test_folders_globs_and_relative_paths_name_members(folder, monkeypatch):
    monkeypatch.chdir(folder)
    begin = f"zip://{folder}/a.zip!"
    for path in (
        "zip://a.zip!/d",
        "zip://a.zip!/d/",
        "zip://a.zip!/d/*.csv",
        "zip://a.zip!/?/[no].csv",
        "zip://d::a.zip",
    ):
        assert expand_paths(path, "read") == (f"{begin}/d/n.csv", f"{begin}/d/o.csv")
    assert expand_paths("zip://a.zip!/**/*.csv", "read")[0] == f"{begin}/d/n.csv"
    assert local_path("zip://a.zip", "read") == begin
    names = {each.name: each.is_folder for each in file_system_of(begin).entries(begin)}
    assert names == {"m.csv": False, "p.parquet": False, "d": True, "years": True}


def test_streams_and_ranges_have_the_bytes_of_the_member(folder):
    path, content = f"zip://{folder}/a.zip!/m.csv", (folder / "m.csv").read_bytes()
    files = file_system_of(path)
    assert files.status(path).size_bytes == len(content) and files.read(path) == content
    with files.open_stream(path) as stream:
        stream.seek(-7, 2)
        assert stream.tell() == len(content) - 7 and stream.read() == content[-7:]
        stream.seek(100)
        assert stream.read(50) == content[100:150]
    with files.open_ranges(path) as ranges:
        assert ranges.read_at(len(content) - 3, 10) == content[-3:]
        assert b"".join(part for _, part in ranges.read_ranges([(5, 20), (30, 40)])) == content[5:20] + content[30:40]


def test_what_is_no_archive_or_member_is_refused(folder):
    (folder / "bad.zip").write_bytes(b"no archive")
    whole = (folder / "a.zip").read_bytes()
    (folder / "cut.zip").write_bytes(whole[:2000] + bytes(100) + whole[2100:])
    with Environment() as env:
        for path, said in (
            (f"{folder}/a.zip", f"a zip archive, whose members are read by their names: zip://{folder}/a.zip!/NAME"),
            (f"zip://{folder}/a.zip!/o.csv", "no such file or folder"),
            (f"zip://{folder}/none.zip!/o.csv", "no such file or folder"),
            (f"zip://{folder}/bad.zip!/o.csv", "the zip archive is none, or damaged"),
        ):
            with pytest.raises(PlanError, match=said):
                env.read_csv(path)
        with pytest.raises(Exception, match="the zip archive is none, or damaged"):
            env.read_csv(f"zip://{folder}/cut.zip!/m.csv", header=True).collect()
        env.read_csv(f"zip://{folder}/a.zip!/d").write_csv(f"zip://{folder}/a.zip!/out")
        with pytest.raises(PlanError, match="its file system does not rename folders"):
            env.execute()
    path = f"zip://{folder}/a.zip!/new"
    for call in ("create", "delete", "delete_tree", "written_bytes"):
        with pytest.raises(OSError, match="a zip archive is read, and not written"):
            getattr(file_system_of(path), call)(path)
