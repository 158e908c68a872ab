"""Random queries and random programs on Spark and on a cluster: their rows are those embedded, or of plain Python.

Ten plans for each seed: five queries, a program over few types, three over all, and one whose every step plain Python
does, too. ``TORTURE=1``: thousands; ``SEEDS=1000 FIRST_SEED=500``: as many others as one has time for. For each fourth
seed Spark compiles its plans, as it does by default; else it interprets them, which takes less where rows are few, and
for one in four it keeps to its first plan, too (no adaptive execution), whose joins and exchanges are others.
"""

import contextlib
import os
import random

import pytest

from engine import Environment, JoinHint, NotYetSupportedError
from engine.errors import EngineError
from engine.spark.session_settings import with_settings
from tests.chaos.cluster import PATIENT, ChaosCluster
from tests.dataframes.conftest import SETTINGS
from tests.dataframes.same_rows import assert_same
from tests.dataframes.wide_programs import WideProgram
from tests.integration import test_random_plans
from tests.integration.test_random_plans import STEPS, Program, make_tables
from tests.integration.whole_programs import WholeProgram
from tests.sampling import IS_TORTURE
from tests.sql.random_queries import Generator

pytestmark = pytest.mark.spark

_FIRST = int(os.environ.get("FIRST_SEED", "0"))
_SEEDS = range(_FIRST, _FIRST + int(os.environ.get("SEEDS", "500" if IS_TORTURE else "10")))
_QUERIES = 5
_KINDS = ("spread", "filter", "compute", "distinct", "group", "python", "top", "join", "join", "union", "swap", "total")

_INTERPRETED = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # each plan, and each that takes its place while it runs, is written out for the UI
    "spark.sql.ui.explainMode": "simple",
}
#: for one seed after the other: Spark's own settings, with which users run it, and cheaper ones
SETTINGS_OF_SPARK = ({}, _INTERPRETED, _INTERPRETED, {**_INTERPRETED, "spark.sql.adaptive.enabled": "false"})
#: has Spark compute a side of a join whose other side is empty, with the values that fail there
EVERY_SIDE_COMPUTED = {
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PropagateEmptyRelation",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with ChaosCluster(tmp_path_factory.mktemp("cluster"), **PATIENT) as running:
        yield running


@pytest.fixture(params=["spark", pytest.param("cluster", marks=pytest.mark.processes)])
def places(request, monkeypatch):
    """Environments that must give the same rows: the embedded one, and one on Spark or on a cluster."""
    with Environment(config=SETTINGS) as local, contextlib.ExitStack() as stack:
        if request.param == "spark":
            settings = SETTINGS_OF_SPARK[request.getfixturevalue("seed") % len(SETTINGS_OF_SPARK)]
            stack.enter_context(with_settings(request.getfixturevalue("spark"), settings))
        else:
            monkeypatch.setenv("DREY_CONF_DIR", str(request.getfixturevalue("cluster").folder / "conf"))
        yield local, stack.enter_context(Environment(config=SETTINGS, target=request.param))


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
def test_programs_over_all_types_have_one_result(places, seed, request):
    """Zones, decimals, nested values, windows, as-of joins, functions, SQL: errors are alike, too."""
    for own in range(3 * seed, 3 * seed + 3):
        results, trace = zip(*(_result_of_wide(env, own) for env in places), strict=True)
        if isinstance(results[0], type) and not isinstance(results[1], type) and "spark" in request.node.name:
            with with_settings(request.getfixturevalue("spark"), EVERY_SIDE_COMPUTED):
                results = (results[0], _result_of_wide(places[1], own)[0])
        if isinstance(results[0], type):
            assert results[1] is results[0], trace[0]
        else:
            assert_same(*results)


def _result_of_wide(env, seed):
    """Return the rows of a program, or what kind of error it ends with; and what it does."""
    program = WideProgram(env, random.Random(seed))
    try:
        return program.run().to_arrow(), program.trace
    except EngineError as error:
        return type(error), program.trace


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
