"""The last release, built from its tag, once, and kept, for tests against it.

    python -m tests.last_release      builds it in build/releases/<tag>, and prints its folder; says so where none is
    RELEASE=commit                    takes that commit for the last release, whatever tags there are

A release is a tag such as v0.2.0 on a commit before this one. Until there is one, a commit some way back stands for it.
What is built is used again, as long as build/releases is kept. Native modules whose sources are the same here are taken
from here, so that building a commit near by takes seconds, and a release three minutes. Where there is no history,
nothing is built, and tests against it are skipped.
"""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import tarfile
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

from Cython.Build.Dependencies import create_dependency_tree

ROOT = Path(__file__).parents[1]
RELEASES = ROOT / "build" / "releases"
#: number of commits between this one and the one that stands for the last release
_BACK = 50
#: files that decide how modules are made of their sources
_BUILD_FILES = ("setup.py", "pyproject.toml")


class Build(NamedTuple):
    """Sources that processes are started from: a folder for PYTHONPATH, and their version."""

    folder: Path
    version: str


def last_tag(repository=ROOT):
    """Return the tag of the last release before this commit, or the commit that stands for it; None: there is none."""
    chosen = os.environ.get("RELEASE")
    tag = ("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^")
    back = ("rev-list", "--first-parent", "--max-count=1", f"--skip={_BACK}", "HEAD")
    return chosen or _said(repository, *tag) or _said(repository, *back) or None


def _said(repository, *words):
    """Return what git says; "" where it fails."""
    done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def built(repository=ROOT, releases=RELEASES):
    """Return the last release, which is built unless it is there; None where there is none."""
    tag = last_tag(repository)
    if tag is None:
        return None
    folder = releases / tag
    if kept(repository, releases) is None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        archive = folder / "sources.tar"
        subprocess.run(["git", "-C", str(repository), "archive", "-o", str(archive), tag], check=True)
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        archive.unlink()
        take_modules(repository, folder)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("DREY_")}
        words = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(words, cwd=folder, env=environment, check=True)
    return kept(repository, releases)


def kept(repository=ROOT, releases=RELEASES):
    """Return the last release if it was built, else None."""
    tag = last_tag(repository)
    if tag is None or not (releases / tag / "build" / "profile").exists():
        return None
    text = (releases / tag / "engine" / "__init__.py").read_text()
    return Build(releases / tag, re.search(r'__version__ = "(.+)"', text)[1])


def take_modules(repository, folder):
    """Copy the native modules whose sources are the same in a folder; return the names of their sources."""
    profile = repository / "build" / "profile"
    is_release = profile.exists() and profile.read_text() == "release"
    if not is_release or not all(_is_same(name, repository, folder) for name in _BUILD_FILES):
        return []
    with chdir(repository):
        tree = create_dependency_tree()
        found = [str(each) for name in ("engine", "tests") for each in Path(name).rglob("*.pyx")]
        sources = {each: tree.all_dependencies(each) for each in found}
    same = [
        source
        for source, needed in sources.items()
        if all(_is_same(each, repository, folder) for each in needed if not Path(each).is_absolute())
    ]
    # what Cython writes is newer than its sources, and a module, which lies in build first, is newer than that
    for place, ending in ((".", ".c"), ("build/lib*", ".*.so")):
        for source in (*same, "engine/_cython.pyx"):
            for made in repository.glob(f"{place}/{source.removesuffix('.pyx')}{ending}"):
                target = folder / made.relative_to(repository)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(made, target)
    return same


def _is_same(name, repository, folder):
    return (folder / name).exists() and filecmp.cmp(repository / name, folder / name, shallow=False)


if __name__ == "__main__":
    found = built()
    print(found.folder if found else "there is no history: nothing is built, and no test uses it")
