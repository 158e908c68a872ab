"""The last release is built from its tag once, with modules that are here; where there is none, a commit does."""

import subprocess

import pytest

from tests import last_release
from tests.last_release import built, kept, last_tag

#: the same in all commits; modules are not compiled, but named
SOURCES = {
    "setup.py": """
import os, pathlib
made = [each.name for each in pathlib.Path("build").glob("lib/engine/*.so")]
os.makedirs("build", exist_ok=True)
pathlib.Path("build/profile").write_text("release")
pathlib.Path("found").write_text(" ".join(made))
""",
    "pyproject.toml": "",
    "engine/same.pyx": "",
    "engine/changed.pyx": "from engine.changed cimport V\n",
}


@pytest.fixture
def repository(tmp_path):
    """Return a repository of two commits without a tag: a package, and another version of it, with what was built."""
    folder = tmp_path / "repository"
    (folder / "engine").mkdir(parents=True)
    run(folder, "init", "--quiet")
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    for version in ("0.1", "0.2"):
        (folder / "engine" / "__init__.py").write_text(f'__version__ = "{version}"\n')
        (folder / "engine" / "changed.pxd").write_text(f"cdef enum:\n    V = {version[-1]}\n")
        run(folder, "add", ".")
        run(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", version)
    (folder / "build" / "lib" / "engine").mkdir(parents=True)
    (folder / "build" / "profile").write_text("release")
    for name in ("same", "changed"):
        (folder / "engine" / f"{name}.c").touch()
        (folder / "build" / "lib" / "engine" / f"{name}.cpython.so").touch()
    return folder


def run(folder, *words):
    subprocess.run(["git", "-C", str(folder), *words], check=True)


def test_without_a_release_nothing_is_built(repository, tmp_path):
    run(repository, "tag", "v0.2")  # this commit is none before this one
    assert last_tag(repository) is None
    assert built(repository, tmp_path / "releases") is kept(repository, tmp_path / "releases") is None
    assert not (tmp_path / "releases").exists()


def test_a_commit_stands_for_the_last_release_some_way_back_or_where_it_is_named(repository, tmp_path, monkeypatch):
    monkeypatch.setattr(last_release, "_BACK", 1)
    assert built(repository, tmp_path / "back").version == "0.1"
    monkeypatch.setenv("RELEASE", "HEAD")
    assert built(repository, tmp_path / "named").version == "0.2"


def test_the_last_release_is_built_once_from_the_sources_of_its_tag(repository, tmp_path):
    run(repository, "tag", "v0.1", "HEAD^")
    releases = tmp_path / "releases"
    assert kept(repository, releases) is None
    build = built(repository, releases)
    assert build == (releases / "v0.1", "0.1") == kept(repository, releases)
    (build.folder / "build" / "profile").unlink()  # it was interrupted
    assert kept(repository, releases) is None
    assert built(repository, releases) == build
    before = (build.folder / "found").stat()
    assert built(repository, releases) == build and (build.folder / "found").stat() == before


@pytest.mark.parametrize("changed", ["", "setup.py", "build/profile"])
def test_modules_are_taken_from_here_where_their_sources_and_their_build_are_the_same(repository, tmp_path, changed):
    run(repository, "tag", "v0.1", "HEAD^")
    if changed:
        (repository / changed).write_text("another")
    build = built(repository, tmp_path / "releases")
    assert (build.folder / "found").read_text() == ("" if changed else "same.cpython.so")
