"""Short reads and writes, interrupted calls, refused descriptors: what is read is what was written, or an error.

SEEDS=100 python -m pytest tests/iomanager/test_faulty_io.py
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import first

SEEDS = int(os.environ.get("SEEDS", "2"))
ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="the faults are a library that has to be compiled"),
    pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer has calls of its own"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faulty") / "faulty_io.so"
    source = Path(__file__).with_name("faulty_io.h")
    command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-x", "c", str(source), "-o", str(path), "-ldl"]
    subprocess.run(command, check=True)
    return path


def _run(library: Path, folder: Path, faults: str, seed: int, *words: str) -> tuple[list[int], list[int]]:
    """Return how many rounds were right and refused, and how many faults of each kind there were."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.iomanager.faulty_job", str(folder), str(seed), *words],
        env={**os.environ, "LD_PRELOAD": str(library), "FAULTY_IO": f"{seed},{faults}"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("faults: "))
    return [int(each) for each in re.findall(r"\d+", done.stdout)], [int(each) for each in re.findall(r"\d+", said)]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_calls_that_do_a_part_or_are_interrupted_change_nothing(library: Path, tmp_path: Path, seed: int) -> None:
    (right, refused), (short, interrupted, *_) = _run(library, tmp_path, "30,20,0:0,0:0", seed)
    assert right > 100 and refused == 0
    assert min(short, interrupted) > 100


@pytest.mark.parametrize("seed", first(*range(SEEDS)))
def test_few_descriptors_are_enough_for_many_files(library: Path, tmp_path: Path, seed: int) -> None:
    """So few that files are closed and opened again between two blocks."""
    (right, refused), _ = _run(library, tmp_path, "5,5,0:0,0:0", seed, "48")
    assert right > 100 and refused == 0


@pytest.mark.parametrize("seed", first(*range(SEEDS)))
def test_refused_descriptors_and_failed_closes_are_errors(library: Path, tmp_path: Path, seed: int) -> None:
    """EMFILE of an open, and EDQUOT of a close, after which what was written may be lost."""
    (right, refused), (_, _, opens, closes) = _run(library, tmp_path, "5,5,20:24,20:122", seed, "40", "refused")
    assert right + refused > 100 and refused > 0
    assert min(opens, closes) > 0
