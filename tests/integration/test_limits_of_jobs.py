"""A job over its limit ends with one error that says so; the next one in the same session runs."""

import time

import pyarrow as pa
import pytest

from engine.api.environment import Environment
from engine.column_expressions.expressions import col
from engine.errors import JobExecutionError

pytestmark = [pytest.mark.integration, pytest.mark.quick]

TWO = {"parallelism.default": "2", "execution.batch.adaptive.auto-parallelism.enabled": "false"}
DATA = pa.table({"k": list(range(200_000)), "text": [f"some text {k}" for k in range(200_000)]})


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"job.limit.result-size": "10kb"}, r"the job's result has .*mb; its limit is 10kb"),
        ({"job.limit.slots": "1", **TWO}, "needs 2 slots at one time; its limit is 1"),
        ({"job.limit.wall-time": "1 ms"}, "the job has run for .* s; its limit is 0.001 s"),
        ({"job.limit.disk": "1kb", "debug.force-spill": "true", **TWO}, "has written .* to disks"),
    ],
)
def test_the_error_names_limit_value_and_option(settings, text):
    (option, *_) = settings
    with Environment(settings) as env:
        sorted_rows = env.from_arrow(DATA).filter(col("k") >= 0).sort("text")
        with pytest.raises(JobExecutionError, match=f"LimitExceededError: .*{text}.*{option}") as failed:
            sorted_rows.to_arrow()
        assert len(str(failed.value).splitlines()) <= 15
        if "result" in option:
            assert len(sorted_rows.filter(col("k") < 5).collect()) == 5


def test_the_memory_of_python_workers_counts_while_they_work():
    def hold(batch):
        held = bytearray(48 << 20)
        held[::4096] = b"x" * len(held[::4096])
        end_s = time.monotonic() + 60.0
        while time.monotonic() < end_s:
            time.sleep(0.01)
        raise AssertionError("the job goes on while its function holds too much")

    text = r"its tasks use .* of memory; the limit is .*job\.limit\.memory"
    with Environment({"job.limit.memory": "32mb"}) as env, pytest.raises(JobExecutionError, match=text):
        env.from_arrow(DATA).map_batches(hold, DATA.schema).to_arrow()
