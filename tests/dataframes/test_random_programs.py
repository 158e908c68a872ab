"""Random queries and random programs on Spark: the rows are those of the embedded cluster, or of plain Python.

``TORTURE=1``: hundreds of each; ``SEEDS=10000 FIRST_SEED=500``: as many others as one has time for.
"""

import os
import random

import pytest

from engine import JoinHint, NotYetSupportedError
from engine.errors import EngineError
from tests.dataframes.same_rows import assert_same
from tests.dataframes.wide_programs import WideProgram
from tests.integration import test_random_plans
from tests.integration.test_random_plans import STEPS, Program, make_tables
from tests.integration.whole_programs import WholeProgram
from tests.sampling import IS_TORTURE
from tests.sql.random_queries import Generator

pytestmark = pytest.mark.spark

_FIRST = int(os.environ.get("FIRST_SEED", "0"))
_SEEDS = range(_FIRST, _FIRST + int(os.environ.get("SEEDS", "500" if IS_TORTURE else "6")))
_QUERIES = 5
_KINDS = ("spread", "filter", "compute", "distinct", "group", "python", "top", "join", "join", "union", "swap", "total")


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


@pytest.mark.parametrize("seed", _SEEDS)
def test_programs_over_all_types_have_one_result(places, seed):
    """Zones, decimals, nested values, windows, as-of joins, functions: errors are alike, too."""
    results = []
    for env in places:
        program = WideProgram(env, random.Random(seed))
        try:
            results.append(program.run().to_arrow())
        except EngineError as error:
            results.append(type(error))
    if isinstance(results[0], type):
        assert results[1] is results[0], program.trace
    else:
        assert_same(*results)


@pytest.mark.parametrize("seed", _SEEDS)
def test_programs_of_everything_give_the_rows_of_plain_python(places, tmp_path, seed):
    chance = random.Random(f"spark {seed}")
    program = WholeProgram(places[1], chance, tmp_path, chance.choice([1, 1, 1, 5]))
    try:
        program.grow(chance.randrange(1, 7))
        program.check()
    except Exception as error:
        error.add_note("\n".join(program.trace))
        raise
