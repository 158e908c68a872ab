"""What travels with a job: modules beside the script that it imported, --py-files, nothing that is installed."""

import importlib
import io
import sys
import zipfile

import pytest

from engine.errors import ConfigurationError
from engine.graph.job_graph import SCRIPT_MODULES
from engine.targets.shipped_modules import shipped_modules


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "job.py").write_text("import cleaning\n")
    (tmp_path / "cleaning_of_this_test.py").write_text("FACTOR = 2\n")
    (tmp_path / "never_imported.py").write_text("x = 1\n")
    package = tmp_path / "package_of_this_test"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__pycache__" / "old.pyc").write_bytes(b"")
    (package / "__init__.py").write_text("")
    (package / "later.py").write_text("y = 1\n")
    (tmp_path / "data.csv").write_text("1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("cleaning_of_this_test", "package_of_this_test"):
        importlib.import_module(name)
    yield tmp_path
    for name in ("cleaning_of_this_test", "package_of_this_test"):
        sys.modules.pop(name, None)


def names(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.namelist()


def test_what_the_script_imported_from_its_folder_travels_as_one_archive(folder):
    (module,) = shipped_modules(folder / "job.py", ())
    assert module.name == SCRIPT_MODULES
    assert names(module.content) == [
        "cleaning_of_this_test.py",
        "package_of_this_test/__init__.py",
        "package_of_this_test/later.py",
    ]


def test_the_same_files_are_the_same_bytes(folder):
    assert shipped_modules(folder / "job.py", ()) == shipped_modules(folder / "job.py", ())


def test_py_files_come_first_files_as_they_are_and_folders_with_what_is_in_them(folder):
    wheel = folder / "lib-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("lib.py", "")
    entries = (str(folder / "never_imported.py"), str(wheel), str(folder / "package_of_this_test"))
    shipped = shipped_modules(None, entries)
    assert [module.name for module in shipped] == [
        "never_imported.py",
        "lib-1.0-py3-none-any.whl",
        "package_of_this_test.zip",
    ]
    assert shipped[0].content == b"x = 1\n"
    assert names(shipped[2].content) == ["__init__.py", "later.py"]


def test_a_script_without_modules_ships_nothing(tmp_path):
    (tmp_path / "job.py").write_text("")
    assert shipped_modules(tmp_path / "job.py", ()) == []


@pytest.mark.parametrize("entry", ["missing.py", "data.csv"])
def test_what_is_no_module_is_refused_by_name(folder, entry):
    with pytest.raises(ConfigurationError, match=entry):
        shipped_modules(None, (str(folder / entry),))
