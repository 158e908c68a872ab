"""What a small job costs: the first one of a process, and those that follow it: ``python -m tests.bench start``.

Milliseconds of processor time, of all threads, in a process that has loaded pyarrow with its Parquet. Each turn is a
process of its own: import and first job, then ``_JOBS`` jobs of each kind. The least of the turns counts: what a job
costs does not shrink, and a busy machine adds to it. Bytecode is there, as an installation has it.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable

_JOBS = 50
_JOINED = 9


def _cpu_ms() -> float:
    return time.process_time() * 1e3


def _each_ms(job: Callable[[], object]) -> float:
    job()
    began = _cpu_ms()
    for _ in range(_JOBS):
        job()
    return (_cpu_ms() - began) / _JOBS


def measure() -> dict[str, float]:
    """Measure in this process, which has loaded nothing of the engine yet."""
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.parquet

    began = _cpu_ms()
    from engine import Environment

    imported = _cpu_ms()
    with Environment() as env:

        def rows(value: str) -> object:
            schema = pa.schema([("key", pa.int64()), (value, pa.int64())])
            return env.from_rows([(number, 2 * number) for number in range(10)], schema=schema)

        single = rows("value_0")
        single.collect()
        first = _cpu_ms()
        joined = [single]
        for index in range(1, _JOINED):
            joined.append(joined[-1].join(rows(f"value_{index}"), on="key"))
        return {
            "import": imported - began,
            "first job": first - imported,
            "import and first job": first - began,
            "ten rows": _each_ms(single.collect),
            "join of ten rows": _each_ms(joined[1].collect),
            f"join of {_JOINED} times ten rows": _each_ms(joined[-1].collect),
        }


def report(turns: int) -> str:
    """Measure in a process for each turn; return a table of the least of each figure."""
    found = []
    for turn in range(turns + 1):  # the first one writes the bytecode
        command = [sys.executable, "-W", "ignore", "-m", "tests.bench.start"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        if turn:
            found.append(json.loads(done.stdout))
    lines = [f"{name:28}{min(one[name] for one in found):8.1f}" for name in found[0]]
    return "\n".join([f"{'':28}{'CPU ms':>8}", *lines])


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure()))
