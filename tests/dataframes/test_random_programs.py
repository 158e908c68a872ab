"""Random queries and random programs on Spark: the rows are those of the embedded cluster."""

import os
import random

import pytest

from engine import JoinHint, NotYetSupportedError
from tests.dataframes.same_rows import assert_same
from tests.integration import test_random_plans
from tests.integration.test_random_plans import STEPS, Program, make_tables
from tests.sampling import IS_TORTURE
from tests.sql.random_queries import Generator

pytestmark = pytest.mark.spark

_SEEDS = range(int(os.environ.get("SEEDS", "500" if IS_TORTURE else "6")))
_QUERIES = 5
_KINDS = ("filter", "compute", "distinct", "group", "python", "top", "join", "join", "union", "swap", "total")


@pytest.mark.parametrize("seed", _SEEDS)
def test_queries_have_one_answer(places, seed):
    generator = Generator(seed)
    for env in places:
        for name, table in generator.tables.items():
            env.register(name, env.from_arrow(table))
    answered = 0
    for _ in range(_QUERIES):
        query = generator.query()
        try:
            wanted = places[0].sql(query).to_arrow()
        except NotYetSupportedError:
            continue
        assert_same(wanted, places[1].sql(query).to_arrow())
        answered += 1
    assert answered


@pytest.mark.parametrize("seed", _SEEDS)
def test_programs_have_one_result(places, seed, monkeypatch):
    # Hints are the embedded cluster's, and some are refused.
    monkeypatch.setattr(test_random_plans, "HINTS", [JoinHint.OPTIMIZER_CHOOSES])
    results = []
    for env in places:
        chance = random.Random(seed)
        program = Program(env, make_tables(chance), chance)
        for _ in range(STEPS):
            program.step(chance.choice(_KINDS))
        results.append(program.data.to_arrow())
    assert_same(*results)
