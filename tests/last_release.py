"""The last release as a wheel: built from its tag, once, and kept, for tests against it.

    python -m tests.last_release      builds it into build/releases/<tag>, and prints its path; says so where none is
    RELEASE=commit                    takes that commit for the last release, whatever tags there are

A release is a tag such as v0.2.0 on a commit before this one. What is built for a tag is used again, as long as
build/releases is kept. Where there is no tag, or no history, there is no wheel, and tests against it are skipped.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RELEASES = ROOT / "build" / "releases"


class Build(NamedTuple):
    """Sources that processes are started from: a folder for PYTHONPATH, and their version."""

    folder: Path
    version: str


def last_tag(repository=ROOT):
    """Return the tag of the last release before this commit, or the commit that stands for it; None: there is none."""
    chosen = os.environ.get("RELEASE")
    if chosen:
        return chosen
    words = ("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^")
    done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def built(repository=ROOT, releases=RELEASES):
    """Return the wheel of the last release, which is built unless it is there; None where there is no release."""
    tag = last_tag(repository)
    if tag is None:
        return None
    folder = releases / tag
    if not list(folder.glob("*.whl")):
        with tempfile.TemporaryDirectory(prefix="drey-release-") as sources:
            archive = Path(sources) / "sources.tar"
            subprocess.run(["git", "-C", str(repository), "archive", "-o", str(archive), tag], check=True)
            with tarfile.open(archive) as tar:
                tar.extractall(Path(sources) / "tree", filter="data")
            words = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder))
            subprocess.run([sys.executable, "-m", "pip", *words, str(Path(sources) / "tree")], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def kept(repository=ROOT, releases=RELEASES):
    """Return the wheel of the last release if it was built, else None."""
    tag = last_tag(repository)
    return next(iter((releases / tag).glob("*.whl")), None) if tag is not None else None


def unpacked(wheel, folder):
    """Return what is in a wheel, in a folder."""
    with zipfile.ZipFile(wheel) as content:
        content.extractall(folder)
    return Build(folder, wheel.name.split("-")[1])


if __name__ == "__main__":
    found = built()
    print(found or "there is no tag of a release before this commit: nothing is built, and no test uses it")
