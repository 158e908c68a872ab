"""Modules that came with a job: found before all others, and two jobs may bring different ones of one name."""

import pyarrow as pa
import pytest

from engine.config.loader import configuration_from_texts
from engine.functions.function_bytes import packed
from engine.functions.function_runner import FunctionRunner
from engine.functions.function_session import FunctionPlan
from engine.graph.operator_descriptor import PythonOperator

SCHEMA = pa.schema([("k", pa.int64())])


@pytest.fixture
def runner():
    runner = FunctionRunner()
    yield runner
    runner.close()


def results(runner, job, folder):
    def scaled(row):
        import brought_along

        return (row[0] * brought_along.FACTOR,)

    operator = PythonOperator("map", packed(scaled), "scaled", __file__, 1)
    plan = FunctionPlan(operator, SCHEMA, SCHEMA, job_modules=(str(folder),))
    session = runner.open(job, plan, configuration_from_texts({}))
    try:
        batches = [*session.process(pa.record_batch([[1, 2, 3]], schema=SCHEMA)), *session.finish()]
    finally:
        session.close()
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def test_two_jobs_bring_different_versions_of_one_module(runner, tmp_path):
    for name, factor in (("one", 10), ("two", 100)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "brought_along.py").write_text(f"FACTOR = {factor}\n")
    for _ in range(2):  # the second time in workers that have run already
        assert results(runner, "job-1", tmp_path / "one") == [10, 20, 30]
        assert results(runner, "job-2", tmp_path / "two") == [100, 200, 300]
