"""JobManagers, their Dispatchers and JobMasters over a quorum: whatever fails, no job is lost or run twice.

make seeds                      10,000 of them, five minutes of two processors; N=n another number
PYTHONHASHSEED=0 LOG=INFO python -m tests.cluster_model.run KIND SEED 1      one of them, with its log
"""

import os
import subprocess
import sys

import pytest

from tests.cluster_model.world import KINDS
from tests.tidy.imports import ROOT

NAMES = list(KINDS)
#: seeds of all kinds together, and of one process
SEEDS = int(os.environ.get("SEEDS", "1800"))
BLOCK = 100
#: seeds that have found something
FOUND = {
    ("crowd", 8): "two submissions at once to a new cluster: the second one was told that it is known, and was lost",
    ("crowd", 14): "the same",
    ("store", 282): "a job that had ended was unknown where its file could not be read for a moment",
    ("store", 113): "a leader that could not list the history kept no end of a job, and died",
    ("late", 1533): "a file of which a store told no time was garbage as soon as it was written",
    ("late", 64): "a TaskExecutor that died before it offered a slot left its job to wait for ever",
    ("rough", 20158): "a job was read at last while it was cancelled as one that cannot be read, and ran",
    ("rough", 20343): "the same",
    ("rough", 31228): "a job that had been cancelled was gone while it was read, and the Dispatcher ended",
    (
        "ends",
        958,
    ): "an answer and the watch behind it came at one moment, in no order: none led any more",
    ("disks", 30236): "a cancelled task of the model reported to a JobMaster that was gone, and kept its slot",
    ("rough", 159): "a leader with a clock behind that of the storage left garbage until it had come there",
    ("rough", 166): "the same",
    ("rough", 20467): "a job that was cancelled while it could not be read ended once more, as one that is lost",
}


def run_seeds(*runs):
    """Run seeds, each (kind, first, count), in a process whose sets have one order."""
    words = [str(word) for run in runs for word in run]
    command = [sys.executable, "-m", "tests.cluster_model.run", *words]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)


def test_what_seeds_have_found_stays_mended():
    run_seeds(*((kind, seed, 1) for kind, seed in FOUND))


def test_each_kind_of_cluster_comes_to_its_end():
    run_seeds(*((kind, 100_000, 3) for kind in NAMES))


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(0, -(-SEEDS // len(NAMES)), BLOCK))
@pytest.mark.parametrize("kind", NAMES)
def test_every_seed_comes_to_its_end(kind, first):
    run_seeds((kind, first, BLOCK))
