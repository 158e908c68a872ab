"""Python functions in a process that has so many descriptors left, from none to enough; prints what became of each.

python -m tests.functions.few_descriptors_job [warm]      warm: the process that forks workers runs already
"""

import gc
import os
import resource
import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from engine.config.loader import Configuration
from engine.errors import MachineLimitError
from engine.functions.function_bytes import packed
from engine.functions.function_runner import FunctionRunner
from engine.functions.function_session import FunctionPlan
from engine.gateways.failure_info import failure_info
from engine.graph.operator_descriptor import PythonOperator

SCHEMA = pa.schema({"x": pa.int64()})
BATCH = pa.record_batch([[1, 2, 3]], SCHEMA)
LEFT_MAX = 24
DESCRIPTORS = Path("/proc/self/fd")
LIMIT = 256


def same(row):
    return row


def run(runner):
    operator = PythonOperator("map", packed(same), "same", __file__, 1)
    with closing(runner.open("job", FunctionPlan(operator, SCHEMA, SCHEMA), Configuration())) as session:
        batches = [*session.process(BATCH), *session.process(BATCH), *session.finish()]
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def outcome(left, runner):
    """Run a function with so many descriptors left."""
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        pass
    for _ in range(min(left, len(taken))):
        os.close(taken.pop())
    try:
        assert run(runner) == [1, 2, 3] * 2
        said = "right"
    except Exception as error:
        failure = failure_info(error)
        assert failure.type_name == MachineLimitError.__name__, (left, failure)
        assert failure.retryable and "ulimit -n" in failure.message, failure
        said = "refused"
    finally:
        for descriptor in taken:
            os.close(descriptor)
    runner.release_job("job")
    return said


def main():
    run_warm = "warm" in sys.argv
    with closing(FunctionRunner()) as first:
        run(first)  # whatever is imported by then
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    said = []
    for left in range(LEFT_MAX):
        with closing(FunctionRunner()) as runner:
            if run_warm:
                run(runner)
                runner.release_job("job")
            gc.collect()
            before = len(list(DESCRIPTORS.iterdir()))
            said.append(outcome(left, runner))
            if run_warm:
                gc.collect()
                left_open = len(list(DESCRIPTORS.iterdir())) - before
                assert left_open <= 0, f"{left_open} descriptors stay open with {left} left"
            assert run(runner) == [1, 2, 3] * 2  # with enough of them
    print(" ".join(said))


if __name__ == "__main__":
    main()
