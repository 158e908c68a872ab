"""Files of ``--py-files`` in an object store: fetched for this process, told where they cannot be read."""

import io
import subprocess
import sys
import zipfile

import pytest

from engine.cli.py_files import local_py_files
from engine.errors import ConfigurationError
from engine.storage import file_systems
from tests.storage.memory import MemoryStore
from tests.storage.moto_server import KEYS, running


@pytest.fixture
def store(monkeypatch):
    found = MemoryStore()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, found))
    return found


def test_objects_are_fetched_under_their_names_and_files_stay_where_they_are(store, tmp_path):
    own = str(tmp_path / "own.py")
    assert local_py_files([own, "beside.py"]) == (own, "beside.py")
    store.put("memory://bucket/a/module.py", b"a")
    store.put("memory://bucket/b/module.py", b"b")
    first, second, third = local_py_files(["memory://bucket/a/module.py", own, "memory://bucket/b/module.py"])
    assert second == own and first != third and first.rpartition("/")[2] == third.rpartition("/")[2] == "module.py"
    assert [open(path).read() for path in (first, third)] == ["a", "b"]  # noqa: PTH123, SIM115
    with pytest.raises(ConfigurationError, match=r"--py-files: memory://bucket/none\.py cannot be read"):
        local_py_files(["memory://bucket/none.py"])


JOB = """
import brought
import pyarrow as pa
from drey import Environment

rows = Environment().from_rows([(n,) for n in range(3)], schema=pa.schema([("x", pa.int64())]))
print(rows.map(lambda row: (brought.plus(row.x),), pa.schema([("y", pa.int64())])).to_arrow().to_pylist())
"""


@pytest.mark.thorough
def test_a_job_uses_a_library_of_a_store_and_the_key_to_it_is_told_nowhere(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("brought.py", "def plus(x):\n    return x + 1\n")
    with running("drey-data") as server:
        url = server.put("library.zip", archive.getvalue())
        settings = [
            f"-D{key}={str(value).lower() if value is True else value}" for key, value in server.settings.items()
        ]
        words = ("job", "submit", *settings, "--py-files", url, str(tmp_path / "job.py"))
        command = [sys.executable, "-m", "engine.cli.main", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0 and "[{'y': 1}, {'y': 2}, {'y': 3}]" in done.stdout, done.stderr
    assert KEYS["secret_access_key"] not in done.stdout + done.stderr
