"""Golden texts of explain. ``DREY_UPDATE_GOLDEN=1 pytest tests/optimizer/test_explain.py`` writes them anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.graph.exchange_mode import ExecutionMode
from engine.graph.plan import Plan
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.explain import explain, summary
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, lit, schema, skew_join

GOLDEN = Path(__file__).parent / "golden"


def report_plan() -> Plan:
    builder = Builder()
    orders = builder.source(schema(id="int64", customer="int64", total="double", note="string"), rows=3e6)
    large = builder.filter(orders, call("greater", "total", lit(100.0)))
    sums = builder.aggregate(large, ("customer",), ("sum", "total"))
    customers = builder.source(schema(customer="int64", name="string"), rows=2e6, path="customers.parquet")
    joined = builder.join(sums, customers, on="customer")
    builder.sink(builder.sort(joined, "name", limit=20))
    return builder.plan()


def joins_plan() -> Plan:
    """A join of each type that is no plain equality: full, null-aware anti, semi, cross; conditions; sort-merge."""
    builder = Builder()
    left = builder.source(schema(k="int64", a="int64"), rows=2e6, path="left.parquet")
    right = builder.source(schema(k="int64", b="int64"), rows=1e6, path="right.parquet")
    few = builder.source(schema(low="int64", high="int64"), rows=40, path="few.parquet")
    sort_merge = JoinHint.REPARTITION_SORT_MERGE
    condition = call("less", "a", "b")
    full = builder.join(left, right, on="k", how=JoinType.FULL, hint=sort_merge, condition=condition)
    unseen = builder.join(full, few, left_on="a", right_on="low", how=JoinType.ANTI, null_aware=True)
    seen = builder.join(unseen, right, on="k", how=JoinType.SEMI)
    between = call("and", call("greater", "a", "low"), call("less", "a", "high"))
    builder.sink(builder.join(seen, few, how=JoinType.CROSS, condition=between))
    return builder.plan()


def groups_plan() -> Plan:
    builder = Builder()
    known = {"customer": ColumnStatistics(distinct_count=1.5e8)}
    orders = builder.source(schema(customer="int64", day="int64", total="double"), rows=3e8, columns=known)
    sums = builder.aggregate(orders, ("customer",), ("sum", "total"))
    builder.sink(builder.sort(sums, "customer"))
    days = builder.aggregate(orders, ("day",), ("count_all", None))
    builder.sink(builder.sort(days, "day"))
    return builder.plan()


FOUR = OptimizerSettings(parallelism=4)
CASES = {
    "skew_join": (skew_join(), FOUR),
    "skew_join_legacy": (skew_join(), OptimizerSettings(parallelism=4, legacy_estimates=True)),
    "skew_join_hint": (skew_join(JoinHint.REPARTITION_HASH_SECOND), FOUR),
    "report": (report_plan(), OptimizerSettings(parallelism=4, execution_mode=ExecutionMode.BATCH)),
    "joins": (joins_plan(), FOUR),
    "sorted_groups": (groups_plan(), FOUR),
}


@pytest.mark.parametrize("name", CASES)
def test_explain_reads_as_it_did(name):
    optimized = optimize(*CASES[name])
    text = explain(optimized) + "\n".join(["", *summary(optimized), ""])
    path = GOLDEN / f"explain_{name}.txt"
    if os.environ.get("DREY_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_summary_names_the_join_and_why():
    first, last = summary(optimize(*CASES["skew_join"]))
    assert "right BROADCAST 984 rows" in first
    assert "REPARTITION_HASH_FIRST lost: disk" in first
    assert last.startswith("6 operators, 1 exchange (0 blocking)")


def test_the_optimizer_imports_no_pyarrow():
    code = (
        "import sys, engine.optimizer.optimizer, engine.optimizer.explain, engine.optimizer.job_graph_generator;"
        "sys.exit('pyarrow' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_memory_of_the_process_is_shown_where_it_is_known():
    parts = (("all", 2 << 30), ("managed", 700 << 20), ("Arrow", 300 << 20))
    text = explain(optimize(report_plan(), OptimizerSettings(process_parts=parts)))
    assert text.splitlines()[1] == "memory of the process: all 2.1 GB, managed 734 MB, Arrow 315 MB"
