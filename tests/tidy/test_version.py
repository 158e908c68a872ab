"""The version is written in one place."""

import re
import subprocess
import tomllib

from engine import __version__
from engine.rpc.program import own_program
from tests.tidy.imports import ROOT, source_files


def test_packages_and_commands_have_the_version_of_the_engine():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "engine.__version__"}
    done = subprocess.run([ROOT / "bin" / "flink-run", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"Drey {__version__}"


def test_no_other_source_says_a_version():
    text = re.compile(rf"""["']{re.escape(__version__)}["']""")
    said = [path for path in source_files() if text.search(path.read_text(encoding="utf-8"))]
    assert [str(path.relative_to(ROOT)) for path in said] == ["engine/__init__.py"]


def test_the_changelog_begins_with_the_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"(?m)^## (\S+)", text)
    assert versions[0] == __version__ and len(versions) == len(set(versions))


def test_rest_and_handshakes_say_the_version():
    assert own_program("TaskManager", "protocol").version == __version__


def test_an_entry_of_the_changelog_is_one_thing_that_users_can_do():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = re.findall(r"(?m)^- .*(?:\n  .*)*", text)
    assert len(entries) > 100
    assert [entry for entry in entries if len(entry) > 200] == [], "measurements and reasons have pages of their own"
