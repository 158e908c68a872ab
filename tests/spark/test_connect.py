"""Sessions of Spark Connect: data sets both ways, exports, jobs, and what their errors say.

The server is a process, the program another one, which has no JVM.
"""

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("grpc")

from tests.spark.daemons import connect_server, environment_of_spark

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(300)]

SCRIPT = """
import os
import sys
import warnings
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from engine import DreyWarning, Environment, EngineError, col, sum_
from engine.spark import export_command, export_data, frames, read_dataframe, register

server = os.environ.pop("SPARK_REMOTE")
spark = SparkSession.builder.remote(server).getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "2")
register(spark)
folder = Path(sys.argv[1])
rows = spark.range(100).selectExpr("id", "id % 3 AS k", "timestamp_seconds(id) AS at")

rows.write.format("drey").mode("append").save(str(folder / "set"))
assert spark.read.format("drey").option("columns", "k").load(str(folder / "set")).distinct().count() == 3
assert read_dataframe(rows).count() == 100

for small in (frames.SMALL_BYTES, 0):
    frames.SMALL_BYTES = small
    with Environment() as env:
        few = env.from_rows([(1, "a"), (2, None)], pa.schema([("n", pa.int64()), ("s", pa.string())])).to_spark(spark)
        assert sorted(few.collect()) == [(1, "a"), (2, None)]

for _ in range(2):
    report = export_data(rows, str(folder / "out"), checks=["id <> 7"], since="id", partitions=["k"])
assert (report.row_count, report.bad_row_count) == (0, 0)
assert export_data(spark.range(0), str(folder / "none"), checks=["id <> 7"]).row_count == 0

with Environment(config={"parallelism.default": 2}, target="spark") as env:
    schema = pa.schema([("k", "int64"), ("n", "int64")])
    doubled = env.read_records(folder / "out").map(lambda row: (row.k, row.id * 2), schema)
    found = doubled.group_by("k").agg(n=sum_("n")).sort("k").to_arrow()
    sums = [2 * sum(each for each in range(100) if each % 3 == k and each != 7) for k in range(3)]
    assert found.to_pydict() == {"k": [0, 1, 2], "n": sums}

def told(work):
    try:
        work()
    except EngineError as error:
        text = f"{type(error).__name__}: {error}"
        print(text.splitlines()[0], len(text.splitlines()) <= 15, "JVM" in text)

with Environment(config={"parallelism.default": 2}, target="spark") as env:
    ones = env.from_rows([(1, 1)], schema)
    told(lambda: ones.map(lambda row: (1 // 0, 1), schema).collect())
told(lambda: export_data(spark.sql("SELECT 1 / (id - 3) AS x FROM range(9)"), str(folder / "bad")))
told(lambda: export_data(rows, str(folder / "bad"), checks=["nope > 1"]))
told(lambda: export_data(spark.table("nowhere"), str(folder / "bad")))
try:
    spark.range(1).write.format("drey").mode("append").save(str(folder / "set"))
except Exception as error:
    print(str(error).splitlines()[0].partition("engine.errors.")[2], True, False)
print(sorted(path.name for path in folder.iterdir()))

# another server than the session's is not asked, and that is told
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for remote in (server, "sc://127.0.0.1:1"):
        with Environment(config={"spark.remote": remote}, target="spark") as env:
            assert env.from_rows([(1, 1)], schema).count() == 1
assert {str(one.message) for one in said if one.category is DreyWarning} == {
    f"Spark at sc://127.0.0.1:1 is not asked: this program has a session of Spark at {server} already, which is used"
}, [str(one.message) for one in said]

spark.stop()
with Environment(target="spark") as env:
    told(lambda: env.from_rows([(1, 1)], schema).count())
os.environ["SPARK_REMOTE"] = server
with Environment(target="spark") as env:
    assert env.from_rows([(1, 1)], schema).count() == 1
(folder / "in.csv").write_text("1,a\\nx,b\\n")
words = ["--input", str(folder / "in.csv"), "--format", "csv", "--schema", "id BIGINT, t STRING", "--quiet"]
assert export_command.main([*words, "--output", str(folder / "exported")]) == 0
with Environment() as env:
    assert env.read_records(folder / "exported").collect() == [(1, "a")]
"""


def test_a_session_of_spark_connect_does_the_same(tmp_path):
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("no Java; bin/run-tests provides one")
    folder = tmp_path / "data"
    folder.mkdir()
    with connect_server(tmp_path) as url:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(folder)],
            capture_output=True,
            text=True,
            check=False,
            env=environment_of_spark() | {"SPARK_REMOTE": url},
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [line for line in done.stdout.splitlines() if line]
    assert lines == [
        "JobExecutionError: ZeroDivisionError: integer division or modulo by zero True False",
        "DataError: Spark: Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. If "
        'necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. True False',
        "PlanError: check 'nope > 1': no column 'nope'. There are: id, k, at True False",
        "PlanError: Spark: The table or view `nowhere` cannot be found. Verify the spelling and correctness of the "
        "schema and catalog. True False",
        f"SchemaError: append to {folder}/set: the rows have no column 'k'; they have ['id'] True False",
        "['none', 'out', 'out.rejected', 'set']",
        "ConfigurationError: this program's session of Spark Connect was stopped, and Spark starts no other kind in "
        "the same process: make another with SparkSession.builder.remote(...), or name its server in spark.remote "
        "True False",
        f"1 bad row was set aside in {folder}/exported.rejected",
    ]
