"""What the Cython compiler says of a release build: no hint that a kernel needs the GIL, no warning."""

import subprocess
import sys

import pytest

from tests.tidy.imports import ROOT

_SCRIPT = """
import os, sys
os.chdir({root!r}); sys.path.insert(0, {root!r})
import setup
from pathlib import Path
from Cython.Build import cythonize
from setuptools import Extension
sources = sorted(Path("engine").rglob("*.pyx"))
modules = [Extension(".".join(source.with_suffix("").parts), [str(source)]) for source in sources]
directives = setup.DIRECTIVES | setup.RELEASE_DIRECTIVES
cythonize(modules, compiler_directives=directives, force=True, build_dir={build!r}, nthreads=2)
"""


@pytest.mark.timeout(600)
def test_the_release_build_gives_neither_hints_nor_warnings(tmp_path):
    script = _SCRIPT.format(root=str(ROOT), build=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said = [line for line in (done.stdout + done.stderr).splitlines() if "hint" in line or "warning" in line]
    assert said == []
