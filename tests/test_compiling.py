"""What a process of a run compiles first."""

import sys
from types import SimpleNamespace

from tests import compiling


def test_processes_have_every_file_once_and_all_begin_with_the_same():
    shares = [compiling.share_of(list("abcdefgh"), number, 3) for number in range(3)]
    assert shares == [list("adg"), list("abeh"), list("acf")]
    assert compiling.share_of([], 1, 3) == []


def test_files_of_the_share_are_loaded_whatever_others_raise(tmp_path, monkeypatch):
    folder = tmp_path / "some_tests"
    (folder / "chaos").mkdir(parents=True)
    for name in ("a", "b", "c", "chaos/d"):
        (folder / name).with_name(f"test_{name[-1]}.py").write_text("import pytest\n")
    (folder / "test_a.py").write_text("import pytest\npytest.skip(allow_module_level=True)\n")
    (folder / "test_b.py").write_text("raise ValueError\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = SimpleNamespace(getini=lambda name: ["some_tests"])
    compiling.compile_share(config, tmp_path)
    assert "some_tests.test_c" not in sys.modules
    config.workerinput = {"workerid": "gw0", "workercount": 1}
    compiling.compile_share(config, tmp_path)
    names = {name for name in sys.modules if name.startswith("some_tests.")}
    for name in names | {"some_tests"}:
        monkeypatch.delitem(sys.modules, name)
    assert names == {"some_tests.test_c"}
