"""What Python workers do not need is managed memory: in jobs without functions, one after and beside the other."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from engine import Environment

ONE = pa.schema([("a", pa.int64())])
SIZE = "taskmanager.memory.process.size"


def numbers(env):
    return env.from_arrow(pa.table({"a": range(1000)}))


FUNCTIONS = {
    "map": lambda env: numbers(env).map(lambda row: (row.a,), ONE),
    "reduce": lambda env: numbers(env).group_by("a").reduce(lambda rows: ((row.a,) for row in rows), ONE),
    "co_group": lambda env: numbers(env).co_group(numbers(env), "a", lambda left, right: [(1,)], ONE),
    "partition": lambda env: numbers(env).partition_custom(lambda row, count: row.a % count, "a"),
}


@pytest.fixture
def env(tmp_path):
    with Environment(config={SIZE: "300mb", "parallelism.default": 2, "io.tmp.dirs": str(tmp_path)}) as environment:
        yield environment


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_a_job_with_a_function_of_any_kind_leaves_the_workers_their_share(env, kind):
    assert "Python workers 0 B" not in FUNCTIONS[kind](env).sort("a").explain()
    assert "Python workers 0 B" in numbers(env).sort("a").explain()


def test_jobs_with_and_without_functions_run_one_after_and_beside_the_other(env):
    plain = numbers(env).sort("a", descending=True)
    mapped = numbers(env).map(lambda row: (2 * row.a,), ONE)

    def total(data):
        return sum(row[0] for row in data.collect())

    for _ in range(2):
        assert (total(plain), total(mapped)) == (499_500, 999_000)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(total, (plain, mapped) * 4)) == [499_500, 999_000] * 4
