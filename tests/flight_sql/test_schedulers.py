"""Airflow's hook and operator, and an asset of Dagster, each in an environment of its own, against a server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

AIRFLOW = """
from airflow.providers.apache.arrow.hooks.adbc import AdbcHook
from airflow.providers.common.sql.hooks.handlers import fetch_all_handler
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
hook = AdbcHook(adbc_conn_id="drey")
hook.run("CREATE VIEW few AS SELECT n FROM numbers WHERE n < 10", autocommit=True)
print("hook", hook.run("SELECT n FROM few WHERE n > ?", True, parameters=(7,), handler=fetch_all_handler))
task = SQLExecuteQueryOperator(task_id="count", conn_id="drey", sql="SELECT count(*) FROM few", autocommit=True)
print("operator", task.execute({}))
"""
DAGSTER = """
import os
import adbc_driver_flightsql.dbapi as dbapi
import dagster

@dagster.asset
def totals():
    options = {"username": "dagster", "password": dagster.EnvVar("DREY_TOKEN").get_value()}
    with dbapi.connect(os.environ["DREY_URI"], options, autocommit=True) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT sum(n) AS total FROM numbers")
            return cursor.fetch_arrow_table()

@dagster.asset
def doubled(totals):
    return [2 * total for total in totals["total"].to_pylist()]

result = dagster.materialize([totals, doubled])
print("asset", result.success, result.output_for_node("doubled"))
"""


def run(name, program, uri, token, home):
    folder = Path(sys.prefix) / "schedulers" / name
    python = folder / "bin" / "python"
    if not (folder / ".installed").exists():
        pytest.skip(f"{name} is missing: bash -c 'source bin/config.sh && ensure_schedulers'")
    extra = {"driver": "adbc_driver_flightsql", "db_kwargs": {"uri": uri, "username": name, "password": token}}
    environment = os.environ | {
        "AIRFLOW_HOME": str(home), "DAGSTER_HOME": str(home), "DREY_URI": uri, "DREY_TOKEN": token,
        "AIRFLOW_CONN_DREY": json.dumps({"conn_type": "adbc", "extra": extra}),
    }  # fmt: skip
    done = subprocess.run(
        [str(python), "-c", program], check=False, capture_output=True, env=environment, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture
def numbers(serve, conf, tmp_path):
    (tmp_path / "numbers.sql").write_text("CREATE VIEW numbers AS SELECT n FROM range(100) AS t(n)")
    _, uri = serve("-f", tmp_path / "numbers.sql")
    return uri, (conf / "flight-sql.token").read_text().strip()


def test_airflow_runs_statements(numbers, tmp_path):
    said = run("airflow", AIRFLOW, *numbers, tmp_path)
    assert "hook [(8,), (9,)]" in said
    assert "operator [(10,)]" in said


def test_an_asset_of_dagster_reads_a_table(numbers, tmp_path):
    assert f"asset True [{99 * 100}]" in run("dagster", DAGSTER, *numbers, tmp_path)
