"""The memory that a profile says would avoid spilling does avoid it: in the same job with that much more."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, min_, sum_
from engine.profile.cause_rules import spilling
from tests.profile.profiles import profile_of_run

ROWS, SLOTS, MANAGED_MB = 400_000, 2, 12
JOBS = {
    "sort": lambda facts: facts.sort(["k", "text"]),
    "aggregate": lambda facts: facts.group_by("text").agg(s=sum_("k"), m=min_("one")),
    "join": lambda facts: facts.join(facts.select("k", other=col("text")), on="k"),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("facts") / "facts.parquet"
    keys = [number * 7_919 % 1_000_003 for number in range(ROWS)]
    texts = [f"some text {number}" for number in range(ROWS)]
    pq.write_table(pa.table({"k": keys, "text": texts, "one": [1] * ROWS}), made, row_group_size=50_000)
    return str(made)


def run(path, name, managed_mb):
    config = {"parallelism.default": SLOTS, "taskmanager.memory.managed.size": f"{managed_mb}mb"}
    with Environment(config=config) as env:
        profile = profile_of_run(JOBS[name](env.read_parquet(path)))
    operators = [each for vertex in profile.vertices for each in vertex.operators]
    told = [finding.text for finding in spilling(profile)]  # however little time a fast machine loses
    return sum(each.spilled_bytes for each in operators), told


@pytest.mark.parametrize(
    "name", ["sort", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("aggregate", "join"))]
)
def test_with_the_memory_that_is_told_the_job_does_not_spill(path, name):
    spilled, told = run(path, name, MANAGED_MB)
    assert spilled > 1_000_000 and told
    more_mb = max(int(size) for text in told for size in re.findall(r"(\d+) MB more memory in each slot", text))
    assert run(path, name, MANAGED_MB + SLOTS * more_mb + 1)[0] == 0
