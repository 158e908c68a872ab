"""Clusters of different settings in one process: together they keep the memory of one warm."""

import random

import pyarrow as pa
import pytest

from engine import Environment, sum_
from engine.minicluster.mini_cluster import mini_cluster
from tests.native import _memory_probe as probe

SCHEMA = pa.schema([("column_0", pa.float64()), ("column_1", pa.int64())])
pytestmark = [pytest.mark.integration, pytest.mark.quick]


def manager_of(environment):
    components = mini_cluster(environment._configuration.as_texts())._components
    return components.resources.services.memory_manager


@pytest.mark.skipif(not probe.pages_lie_in_slabs(), reason="pages are allocations of their own in this build")
def test_a_cluster_that_rests_gives_its_free_pages_back_when_another_begins_to_work():
    chosen = random.Random(5)
    rows = [(chosen.random(), index % 1000) for index in range(20_000)]
    with (
        Environment(config={"parallelism.default": 1}) as first,
        Environment(config={"parallelism.default": 2}) as second,
    ):
        wanted = [row.column_0 for row in first.from_rows(rows, SCHEMA).sort("column_0").collect()]
        kept = manager_of(first)
        assert kept.pages_resident > 0 and kept.pages_used == 0
        sums = second.from_rows(rows, SCHEMA).group_by("column_1").agg(total=sum_("column_0")).collect()
        assert len(sums) == 1000
        assert kept.pages_resident == 0 and manager_of(second).pages_resident > 0
        # It is there again, and the other one's turn to give.
        assert [row.column_0 for row in first.from_rows(rows, SCHEMA).sort("column_0").collect()] == wanted
        assert kept.pages_resident > 0 and manager_of(second).pages_resident == 0
