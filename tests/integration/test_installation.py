"""What pip makes of the sources: a source distribution and a wheel that work far away from the checkout."""

import os
import re
import socket
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.docs.pages import blocks_of
from tests.ha.quorum import free_port
from tests.wheels import make_distributions, run

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.processes, pytest.mark.timeout(1800)]

TYPED = """import drey
from drey import Environment, col
from drey.errors import DataError
from drey.spark import read_dataframe
from drey import none
from drey.examples.generate_instruments import generate

env = drey.Environment()
rows = env.read_csv("x").filter(col("n") > 1)
reveal_type(rows)
reveal_type(read_dataframe("x", env))
reveal_type(DataError("x"))
rows.join(rows, on="n", how=1)
"""
COUNT = """import pyarrow as pa
from engine import Environment
numbers = pa.schema([("n", pa.int64())])
rows = Environment().from_rows([(n,) for n in range(100)], schema=numbers)
print("sum", sum(n for n, in rows.map(lambda row: (row.n + 1,), schema=numbers).collect()))
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    return make_distributions(tmp_path_factory.mktemp("dist"))


class Installed:
    """The wheel in an environment of its own, and a home of a user who has nothing yet."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.home, self.work, prefix = folder / "home", folder / "work", folder / "environment"
        self.home.mkdir()
        self.work.mkdir()
        run(sys.executable, "-m", "venv", "--without-pip", prefix, cwd=folder)
        self.bin = prefix / "bin"
        pip = (sys.executable, "-m", "pip", "--python", self.bin / "python", "install", "--no-deps", "--no-index")
        run(*pip, wheel, cwd=folder)
        self.packages = next(prefix.glob("lib/python*/site-packages"))
        # what the wheel depends on is here already; a folder that is named so has none of its .pth files read
        (self.packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        kept = {name: value for name, value in os.environ.items() if not re.match("DREY_|PYTHON|XDG_", name)}
        self.environment = kept | {"HOME": str(self.home), "DREY_REST_PORT": str(free_port()), "USER": "tester"}
        self.environment |= {"DREY_TASKMANAGER_MEMORY_PROCESS_SIZE": "256mb"}

    def run(self, name, *words):
        return run(self.bin / name, *words, cwd=self.work, **self.environment)


@pytest.fixture
def installed(distributions, tmp_path):
    made = Installed(tmp_path, distributions[1])
    yield made
    subprocess.run([made.bin / "stop-cluster.sh"], check=False, cwd=made.work, env=made.environment)


def test_the_source_distribution_has_all_that_is_built_and_nothing_that_was(distributions):
    with tarfile.open(distributions[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = run("git", "ls-files", "engine", "ha", "bin", "conf", cwd=ROOT).splitlines()
    assert {name for name in tracked if (ROOT / name).exists()} <= names
    assert {"LICENSE", "README.md", "setup.py", "pyproject.toml"} <= names
    assert [
        name for name in names if name.endswith((".c", ".so", ".html", ".secret")) or name.startswith("tests")
    ] == []


def test_the_wheel_has_the_packages_and_what_lies_beside_them_in_a_checkout(distributions):
    with zipfile.ZipFile(distributions[1]) as archive:
        names = archive.namelist()
        metadata = message_from_bytes(archive.read(next(name for name in names if name.endswith("/METADATA"))))
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"drey", "engine", "ha", "pyspark_drey"}
    assert {
        "drey/py.typed",
        "drey/spark.py",
        "drey/examples/generate_instruments.py",
        "drey/formats/registry.py",
    } <= set(names)
    assert not any(name.startswith("engine/drey/") for name in names)
    assert [name for name in names if name.endswith((".c", ".pyx", ".html", ".secret"))] == []
    natives = {name.partition(".")[0] for name in names if name.endswith(".so")}
    sources = {str(path.relative_to(ROOT).with_suffix("")) for path in ROOT.glob("engine/**/*.pyx")}
    assert natives == {*sources, "engine/_cython"}
    conf = {f"engine/delivered/{name}" for name in run("git", "ls-files", "conf", cwd=ROOT).splitlines()}
    assert {name for name in names if name.startswith("engine/delivered/conf/")} == conf, "DELIVERED of setup.py"
    assert conf | {"engine/delivered/bin/make-certificates.sh", "engine/py.typed"} <= set(names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"]


def test_every_script_of_bin_that_is_for_users_is_a_command_of_the_wheel(distributions):
    with zipfile.ZipFile(distributions[1]) as archive:
        text = archive.read(next(name for name in archive.namelist() if name.endswith("/entry_points.txt"))).decode()
    scripts = text.partition("[console_scripts]\n")[2].partition("\n[")[0]
    commands = set(re.findall(r"^(\S+) = ", scripts, re.MULTILINE))
    scripts = {path.name for path in (ROOT / "bin").iterdir()} - {"config.sh", "run-tests", "quickstart"}
    assert commands == scripts | {"drey-quickstart"}


def test_the_main_job_runs_from_the_wheel(installed):
    where = installed.run("python", "-c", "import engine, ha; print(engine.__file__, ha.__file__)")
    assert all(path.startswith(str(installed.packages)) for path in where.split())
    installed.run("python", "-m", "engine.examples.generate_instruments", "--rows", "2000", "--out", "data")
    installed.run("python", "-m", "engine.examples.skew_join", "--input", "data", "--out", "first")
    job = installed.packages / "engine" / "examples" / "skew_join.py"
    said = installed.run("flink-run", "job", "submit", job, "--input", "data", "--out", "second")
    assert "FINISHED" in said
    counts = [
        sum(len(path.read_text().splitlines()) for path in (installed.work / name).glob("*.csv"))
        for name in ("first", "second")
    ]
    assert counts == [2000, 2000]
    assert list((installed.home / ".config").glob("*")) == []


def test_the_job_of_the_readme_runs_as_it_stands(installed):
    (block,) = blocks_of((ROOT / "README.md").read_text(encoding="utf-8"), "python")
    (installed.work / "job.py").write_text(block.code)
    for _ in range(2):
        printed = installed.run("python", "job.py")
        assert printed.splitlines()[-1].startswith("[Row(CurrencyCode='EUR', instruments=")


def test_readers_of_types_know_the_names_of_drey(installed):
    (installed.work / "typed.py").write_text(TYPED)
    words = ("-m", "mypy", "--strict", "--no-incremental", "--python-executable", installed.bin / "python", "typed.py")
    said = subprocess.run(
        [sys.executable, *map(str, words)], check=False, cwd=installed.work, capture_output=True, text=True
    ).stdout
    revealed = re.findall(r'Revealed type is "([\w.]+)"', said)
    assert revealed == ["engine.api.data_set.DataSet", "engine.api.data_set.DataSet", "engine.errors.DataError"], said
    faults = re.findall(r"error: (.*)", said)
    expected = ('Module "drey" has no attribute "none"', 'Argument 1 to "read_dataframe"', 'Argument "how" to "join"')
    assert len(faults) == len(expected) and all(map(str.startswith, faults, expected)), said


def test_a_cluster_runs_from_the_wheel_with_its_files_in_folders_of_the_user(installed):
    said = installed.run("start-cluster.sh", "-D", "taskmanager.numberOfTaskSlots=2")
    assert "Started taskmanager" in said
    (installed.work / "count.py").write_text(COUNT)
    assert "sum 5050" in installed.run("flink-run", "job", "submit", "-t", "cluster", "count.py")
    assert "FINISHED" in installed.run("flink-run", "job", "list", "-a")
    conf = installed.home / ".config" / "drey"
    assert {"config.yaml", "workers", "cluster.secret"} <= {path.name for path in conf.iterdir()}
    assert conf.stat().st_mode & 0o777 == 0o700
    state = installed.home / ".local" / "state" / "drey"
    assert list((state / "log").glob(f"flink-tester-jobmanager-0-{socket.gethostname()}.log"))
    added = installed.run("taskmanager.sh", "start")
    assert "Started taskmanager" in added
    assert installed.run("stop-cluster.sh").count("Stopping") == 3
    assert list((state / "pid").rglob("*.pid")) == []


def test_a_home_that_is_named_has_configuration_and_logs(installed):
    installed.environment["DREY_HOME"] = "here"
    installed.run("jobmanager.sh", "start")
    installed.run("jobmanager.sh", "stop")
    here = installed.work / "here"
    assert (here / "conf" / "cluster.secret").is_file()
    assert list((here / "log").glob("*.log"))
    assert list((installed.home / ".config").glob("*")) == []


def test_a_wrong_word_shows_how_a_command_is_called(installed):
    for words in ("jobmanager.sh", "taskmanager.sh restart", "start-cluster.sh now", "stop-cluster.sh now"):
        script, *others = words.split()
        done = subprocess.run(
            [installed.bin / script, *others], check=False, env=installed.environment, capture_output=True, text=True
        )
        assert done.returncode == 1
        assert done.stderr.startswith(f"Usage: {script}")
