"""The last release is built from its tag once, and where there is none nothing is."""

import subprocess

import pytest

from tests.last_release import built, kept, last_tag, unpacked


@pytest.fixture
def repository(tmp_path):
    """Return a repository of two commits without a tag: a package, and another version of it."""
    folder = tmp_path / "repository"
    folder.mkdir()
    run(folder, "init", "--quiet")
    for version in ("0.1", "0.2"):
        (folder / "small.py").write_text(f"version = '{version}'\n")
        (folder / "pyproject.toml").write_text(
            f'[project]\nname = "small"\nversion = "{version}"\n[tool.setuptools]\npy-modules = ["small"]\n'
            '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        )
        run(folder, "add", ".")
        run(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", version)
    return folder


def run(folder, *words):
    subprocess.run(["git", "-C", str(folder), *words], check=True)


def test_without_a_release_there_is_no_wheel(repository, tmp_path):
    run(repository, "tag", "v0.2")  # this commit is none before this one
    assert last_tag(repository) is None
    assert built(repository, tmp_path / "releases") is kept(repository, tmp_path / "releases") is None
    assert not (tmp_path / "releases").exists()


def test_a_commit_stands_for_the_last_release_where_it_is_named(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("RELEASE", "HEAD^")
    assert unpacked(built(repository, tmp_path / "releases"), tmp_path / "unpacked").version == "0.1"


def test_the_last_release_is_built_once_from_the_sources_of_its_tag(repository, tmp_path):
    run(repository, "tag", "v0.1", "HEAD^")
    releases = tmp_path / "releases"
    assert kept(repository, releases) is None
    wheel = built(repository, releases)
    assert wheel.parent == releases / "v0.1" and wheel == kept(repository, releases)
    before = wheel.stat()
    assert built(repository, releases) == wheel and wheel.stat() == before
    build = unpacked(wheel, tmp_path / "unpacked")
    assert build.version == "0.1" and (build.folder / "small.py").read_text() == "version = '0.1'\n"
