"""Functions with the rights of another user: what they read is theirs, what they are given rides along."""

import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from engine.config.loader import configuration_from_texts
from engine.errors import ConfigurationError
from engine.functions import function_runner
from engine.functions.function_bytes import packed
from engine.functions.function_error import UserFunctionError
from engine.functions.function_runner import FunctionRunner
from engine.functions.function_session import FunctionPlan
from engine.functions.worker_protocol import OPENED_MAX
from engine.functions.worker_user import configured_worker_user, open_for_worker, warn_of_unreadable
from engine.graph.operator_descriptor import PythonOperator

NOBODY = "nobody"
SCHEMA = pa.schema([("n", pa.int64()), ("said", pa.string())])


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process another user's rights")


def opened(runner, function, **plan):
    operator = PythonOperator("map", packed(function), "function", __file__, 1)
    return runner.open("job", FunctionPlan(operator, SCHEMA, SCHEMA, **plan), configuration_from_texts({}))


def rows(runner, function, **plan):
    session = opened(runner, function, **plan)
    try:
        batch = pa.record_batch([[1, 2], ["a", "b"]], schema=SCHEMA)
        batches = [*session.process(batch), *session.finish()]
    finally:
        session.close()
    return [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]


@needs_root
def test_a_function_has_the_rights_of_the_user_and_nothing_of_the_taskmanager_s(tmp_path, monkeypatch):
    for name, factor in (("brought", 10), ("script", 100)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}_module.py").write_text(f"FACTOR = {factor}\n")
        (folder / f"{name}_later.py").write_text("LATER = 1\n")
    secret = tmp_path / "cluster.secret"
    secret.write_text("secret")
    tmp_path.chmod(0o700)
    monkeypatch.setattr(function_runner, "current_task_log", lambda: tmp_path / "task.log")

    def function(row):
        import colorsys  # loaded by nothing before
        import os
        import tempfile

        import brought_module
        import script_module

        tempfile.TemporaryFile().close()
        colorsys.rgb_to_hsv(1, 1, 1)
        if row[0] == 2:
            import brought_later
            import script_later

            if brought_later.LATER + script_later.LATER != 2:
                raise ValueError
        try:
            with secret.open() as file:
                read = file.read()
        except PermissionError:
            read = "nothing"
        print("printed by the function")
        factor = brought_module.FACTOR * script_module.FACTOR
        return (row[0] * factor, f"{os.getresuid()} {os.getresgid()} {read}")

    user = pwd.getpwnam(NOBODY)
    runner = FunctionRunner(worker_user=NOBODY)
    try:
        folders = {"job_modules": (str(tmp_path / "brought"),), "script_modules": (str(tmp_path / "script"),)}
        for _ in range(2):  # the second time in the worker that has run already
            said = f"{(user.pw_uid,) * 3} {(user.pw_gid,) * 3} nothing"
            assert rows(runner, function, **folders) == [(1000, said), (2000, said)]
    finally:
        runner.close()
    assert (tmp_path / "task.log").read_text().count("printed by the function") == 4
    assert (tmp_path / "task.log").stat().st_mode & 0o777 == 0o600


def test_a_job_cannot_have_its_functions_in_the_taskmanager():
    runner = FunctionRunner(worker_user=NOBODY)
    operator = PythonOperator("map", packed(len), "len", __file__, 1)
    with pytest.raises(ConfigurationError, match=f"functions run as {NOBODY} here"):
        runner.open(
            "job", FunctionPlan(operator, SCHEMA, SCHEMA), configuration_from_texts({"python.execution-mode": "thread"})
        )


def test_a_user_that_cannot_be_is_an_error_at_the_start(monkeypatch):
    known = {"me": 1000, "other": 1001, "root": 0}

    def look_up(name):
        return SimpleNamespace(pw_uid=known[name], pw_name=name)

    monkeypatch.setattr(pwd, "getpwnam", look_up)
    monkeypatch.setattr(pwd, "getpwuid", lambda user: look_up("me"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    def configured(name):
        return configured_worker_user(configuration_from_texts({"functions.worker-user": name}))

    assert configured_worker_user(configuration_from_texts({})) == ""
    for name, why in (("nosuch", "no user 'nosuch'"), ("root", "is root"), ("other", "only root can")):
        with pytest.raises(ConfigurationError, match=why):
            configured(name)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert configured("other") == "other"


def test_an_installation_that_the_user_may_not_read_is_told(tmp_path, caplog):
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "closed").mkdir(mode=0o700)
    tmp_path.chmod(0o700)
    warn_of_unreadable("other", [tmp_path / "open", tmp_path / "closed"])
    assert f"functions run as other, and {tmp_path / 'closed'} is closed to others" in caplog.text
    assert len(caplog.records) == 1


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library in a folder that only its owner may enter, on the module search path of workers."""
    folder = tmp_path / "library"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "inside.py").write_text("VALUE = 5\n")
    (folder / "single.py").write_text("VALUE = 2\n")
    tmp_path.chmod(0o700)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def imports(row):
    import package.inside
    import single

    return (package.inside.VALUE * single.VALUE, "imported")


@needs_root
def test_a_function_imports_from_a_library_that_its_user_cannot_reach(library):
    runner = FunctionRunner(worker_user=NOBODY)
    try:
        assert rows(runner, imports) == [(10, "imported")] * 2
    finally:
        runner.close()


@needs_root
def test_an_import_from_a_library_that_the_user_cannot_read_says_so(library):
    library.chmod(0o700)
    runner = FunctionRunner(worker_user=NOBODY)
    try:
        with pytest.raises(UserFunctionError) as error:
            rows(runner, imports)
    finally:
        runner.close()
    cause = "No module named 'package'; functions run as nobody here, who may not read"
    assert str(error.value).startswith(f"{cause} {library}")


def test_what_rides_along_is_closed_where_one_cannot_be_opened(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(FileNotFoundError):
        open_for_worker([str(tmp_path), str(tmp_path / "none")], "")
    with pytest.raises(ConfigurationError, match="pack them"):
        open_for_worker([str(tmp_path)] * OPENED_MAX, "")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
