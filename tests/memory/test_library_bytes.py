"""Libraries of tables take what is counted for them, as a process of its own has it that has used them."""

import json
import subprocess
import sys

import pyarrow as pa
import pytest

from engine import Environment
from engine.config.loader import Configuration
from engine.delta_tables.library import DELTALAKE_BYTES
from engine.errors import DreyWarning
from engine.iceberg_tables.library import PYICEBERG_BYTES
from engine.memory.page_budget import SHARE_MIN, PageBudget
from engine.memory.process_memory import process_memory

PROGRAM = """
import sys
import pyarrow as pa
from engine import Environment
format, place = sys.argv[1:]
rows = pa.table({"x": [1, 2, 3]})
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
with Environment({"parallelism.default": "2", "taskmanager.memory.process.size": "256mb"}) as env:
    env.from_arrow(rows).sort("x").write_parquet(f"{place}/files")
    env.execute()
    env.read_parquet(f"{place}/files").sort("x").to_arrow()
    before = resident()
    if format == "delta":
        env.from_arrow(rows).write_delta(f"{place}/table")
        env.execute()
        env.read_delta(f"{place}/table").to_arrow()
    else:
        from pyiceberg.catalog.sql import SqlCatalog
        catalog = SqlCatalog("c", uri=f"sqlite:///{place}/c.db", warehouse=f"file://{place}")
        catalog.create_namespace("db")
        env.from_arrow(rows).write_iceberg("db.t", catalog)
        env.execute()
        env.read_iceberg("db.t", catalog).to_arrow()
    print(resident() - before)
"""


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "counted"), [("delta", DELTALAKE_BYTES), ("iceberg", PYICEBERG_BYTES)])
def test_what_is_counted_is_what_they_take(tmp_path, name, counted):
    command = [sys.executable, "-c", PROGRAM, name, str(tmp_path)]
    taken = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 0.7 * counted < taken < 1.15 * counted


@pytest.mark.parametrize(
    ("settings", "missing_mib"),
    [
        ({"taskmanager.memory.process.size": "256mb"}, 60 + 8),
        ({"taskmanager.memory.process.size": "1gb"}, 60),
        ({"taskmanager.memory.process.size": "1gb", "taskmanager.memory.managed.size": "16mb"}, 0),
    ],
)
def test_pages_give_up_what_no_other_part_has(settings, missing_mib):
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set(key, value, "test")
    sizes = process_memory(configuration, 2, 8 << 30)
    assert sizes.missing_bytes(60 << 20, has_functions=False) == missing_mib << 20
    assert sizes.missing_bytes(0, has_functions=False) == 0
    assert sizes.missing_bytes(60 << 20, has_functions=True) >= 60 << 20


def test_pages_beside_libraries():
    budget = PageBudget(80 << 20, 1 << 15, 2)
    assert budget.beside(0) == budget
    assert budget.beside(20 << 20) == PageBudget(60 << 20, 1 << 15, 2, 0.75)
    assert budget.beside(500 << 20) == PageBudget(10 << 20, 1 << 15, 2, SHARE_MIN)


def test_users_are_told_where_a_process_is_too_small(tmp_path):
    with Environment({"parallelism.default": "1", "taskmanager.memory.process.size": "128mb"}) as env:
        env.from_arrow(pa.table({"x": [1, 2, 3]})).write_delta(tmp_path / "table")
        with pytest.warns(DreyWarning, match="128mb is too little .* take 44mb.* set it to 224mb"):
            env.execute()
            assert env.read_delta(tmp_path / "table").count() == 3
