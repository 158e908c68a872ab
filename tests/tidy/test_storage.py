"""Data is opened, listed, renamed and deleted by engine.storage alone, so that a new file system reaches all of it."""

import ast

from tests.tidy.imports import ROOT

#: Rooms whose files are no data of users, and lie on this machine by their nature.
OTHER_FILES = {
    "blob": "shipped code, kept by a process for its tasks",
    "cli": "scripts, histories and the folder of the quickstart",
    "client": "addresses and keys",
    "config": "configuration",
    "dispatcher": "graphs, journals and results of jobs",
    "entrypoint": "processes, logs, sockets, configuration",
    "examples": "programs that use the public interface only",
    "exchange": "results of tasks, on disks of their process",
    "functions": "memory and traces shared with worker processes",
    "insight": "logs",
    "iomanager": "spill files",
    "memory": "anonymous memory",
    "minicluster": "sockets",
    "rpc": "keys and certificates",
    "targets": "scripts and modules that are shipped",
    "taskexecutor": "folders of a process",
    "transport": "sockets",
}
#: Modules outside of these rooms that open files by themselves, with how many calls; the list only shrinks.
EXCEPTIONS = {
    "api/environment.py": 5,  # the temporary folder of a process
    "commit/staging.py": 2,  # /proc, for the age of a process
    "expressions/time_zones.py": 3,  # the system's time zones
    "flight_sql/uploads.py": 4,  # tables of clients, in the temporary folder of the process
    "jobmaster/journal_files.py": 8,  # the journal of a job
    "spark/export_command.py": 3,  # a glob of Spark's, a script
    "spark/export_rejected.py": 12,  # files that Spark has written itself
    "spark/export_report.py": 1,  # a report for people
    "spark/session.py": 1,  # Spark's own command
}
_OS = {
    *("open", "rename", "replace", "renames", "link", "symlink", "unlink", "remove", "scandir", "listdir", "walk"),
    *("stat", "lstat", "fstat", "makedirs", "mkdir", "rmdir", "pread", "preadv", "fsync", "truncate", "access"),
}
_OS_PATH = {"exists", "lexists", "isfile", "isdir", "islink", "getsize", "getmtime", "realpath", "samefile"}
_ARROW = {"OSFile", "memory_map", "open_file", "ParquetFile", "read_metadata", "read_schema", "read_table", "ORCFile"}
_METHODS = {
    *("iterdir", "rglob", "stat", "lstat", "is_file", "is_dir", "is_symlink", "unlink", "rmdir", "mkdir", "touch"),
    *("read_text", "read_bytes", "write_text", "write_bytes", "hardlink_to", "symlink_to", "resolve", "exists"),
}
#: A name by which files are opened, for arguments of pyarrow's calls that may take one.
_PATH_WORDS = ("path", "part", "file", "place")


def calls_of_files(text):
    """Calls of a source by which files are opened, listed, moved or deleted: (line, call)."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        called, name = node.func, ast.unparse(node.func)
        if name == "open" or name.startswith(("glob.", "shutil.rmtree", "shutil.move", "shutil.copy", "shutil.disk")):
            is_found = name not in ("glob.escape", "glob.has_magic")
        elif not isinstance(called, ast.Attribute):
            continue
        else:
            owner = ast.unparse(called.value)
            argument = ast.unparse(node.args[0]) if node.args else ""
            is_path_method = called.attr in _METHODS or (called.attr == "open" and "ath" in owner)
            is_found = (
                (owner == "os" and called.attr in _OS)
                or (owner == "os.path" and called.attr in _OS_PATH)
                or (owner in ("pa", "pq", "orc") and called.attr in _ARROW and _is_path(argument))
                or (owner not in ("os", "os.path") and is_path_method and not node.args)
                or (called.attr == "open" and "ath" in owner)
                or (called.attr in ("rename", "glob", "replace") and owner.endswith(("path", "folder", "temporary")))
            )
        if is_found:
            yield node.lineno, name


def _is_path(argument):
    return argument.startswith("str(") or argument.rpartition(".")[2].rpartition("_")[2] in _PATH_WORDS


def modules_that_open_files():
    found = {}
    for path in sorted((ROOT / "engine").rglob("*.py")):
        parts = path.relative_to(ROOT / "engine").parts
        if len(parts) > 1 and parts[0] != "storage" and parts[0] not in OTHER_FILES:
            lines = [line for line, _ in calls_of_files(path.read_text(encoding="utf-8"))]
            if lines:
                found["/".join(parts)] = len(lines)
    return found


def test_only_file_systems_open_files_of_users():
    found = modules_that_open_files()
    new = {path: count for path, count in found.items() if count > EXCEPTIONS.get(path, 0)}
    assert new == {}, "use engine.storage.file_systems.file_system_of(path)"
    assert found == EXCEPTIONS, "the list of exceptions only shrinks: take out what is mended"


def test_every_room_that_is_left_out_is_there():
    assert {room for room in OTHER_FILES if not (ROOT / "engine" / room).is_dir()} == set()


def test_the_rule_sees_what_breaks_it():
    bad = """
open(path)
os.rename(a, b)
os.path.isdir(folder)
glob.glob(pattern)
shutil.rmtree(folder)
Path(path).open("rb")
Path(path).stat().st_size
folder.iterdir()
(folder / "a").is_file()
pa.OSFile(str(path), "wb")
pq.ParquetFile(self.path)
temporary.replace(path)
"""
    assert sorted(line for line, _ in calls_of_files(bad)) == list(range(2, 14))
    good = """
files.open_stream(path)
text.replace("a", "b")
glob.escape(path)
os.path.dirname(path)
os.fspath(path)
pa.ipc.open_file(file)
pq.ParquetFile(pa.BufferReader(data))
pool.open(batch)
env.rename("a", "b")
"""
    assert list(calls_of_files(good)) == []
