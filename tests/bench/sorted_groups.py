"""Groups in the order of their keys, combined in the sort and not, in turns: ``python -m tests.bench sorted_groups``.

Rows of an int64 or string key and an int64; sum, count and avg. CPU seconds of the second of two runs in one cluster
(its memory is warm), the better of the turns; the ratio is what counts. The planner is told which form to take.
"""

import resource

import numpy as np
import pyarrow as pa

from engine import Environment, avg, col, count, sum_
from engine.optimizer import sort_planning, sorted_aggregates

ROWS = 5_000_000

#: kind of key, groups as a share of the rows, managed memory of two slots for each 5 M rows, MB (None: it fits)
_CASES = tuple(
    (kind, share, memory_mb)
    for kind in ("int64", "string")
    for share in (0.8, 0.4, 0.2, 0.1, 0.0002)
    for memory_mb in (None, 64)
)
_LEAST_MB = 8


def _table(kind: str, groups: int, rows: int) -> pa.Table:
    """Return rows of so many groups: each is there once, other rows repeat any of them."""
    rng = np.random.default_rng(1)
    numbers = np.concatenate([np.arange(groups), rng.integers(0, groups, rows - groups)])
    keys = pa.array(rng.permutation(numbers))
    if kind == "string":
        keys = pa.array(np.char.add("key-", keys.to_numpy().astype(str)))
    return pa.table({"k": keys, "v": rng.integers(0, 1000, rows)})


def _cpu_seconds(table: pa.Table, config: dict[str, object]) -> float:
    with Environment(config={"parallelism.default": 2, **config}) as environment:
        data = environment.from_arrow(table)
        groups = data.group_by("k").agg(total=sum_(col("v")), rows=count(), mean=avg("v")).sort("k")
        groups.to_arrow()
        before = resource.getrusage(resource.RUSAGE_SELF)
        groups.to_arrow()
        after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def report(rows: int, turns: int) -> str:
    """Run all cases; return a table: CPU seconds of hash and sort, of the combining sort, and their ratio."""
    why, small = sorted_aggregates._why_dearer, sort_planning.SMALL_SORT_BYTES
    forms = {"apart": lambda *_: "told so", "combined": lambda *_: ""}
    lines = [f"{'key':8}{'groups':>10}{'memory':>10}{'apart':>9}{'combined':>10}{'ratio':>7}   CPU seconds"]
    try:
        sort_planning.SMALL_SORT_BYTES = 0.0
        for kind, share, memory_mb in _CASES:
            table = _table(kind, max(1, int(rows * share)), rows)
            mb = None if memory_mb is None else max(_LEAST_MB, memory_mb * rows // ROWS)
            config = {} if mb is None else {"taskmanager.memory.managed.size": f"{mb}mb"}
            seconds: dict[str, list[float]] = {form: [] for form in forms}
            for _ in range(turns):
                for form, told in forms.items():
                    sorted_aggregates._why_dearer = told
                    seconds[form].append(_cpu_seconds(table, config))
            apart, combined = (min(seconds[form]) for form in forms)
            memory = "fits" if mb is None else f"{mb} MB"
            lines.append(
                f"{kind:8}{int(rows * share):>10}{memory:>10}{apart:>9.2f}{combined:>10.2f}{combined / apart:>7.2f}"
            )
    finally:
        sorted_aggregates._why_dearer, sort_planning.SMALL_SORT_BYTES = why, small
    return "\n".join(lines)
