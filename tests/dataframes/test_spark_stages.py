"""The result of a job on Spark: its stages with the rows of each task, then its sinks. And how its stages are ended."""

import threading
import time

import pyarrow as pa
import pytest

from engine import col, sum_
from engine.targets import spark_stages

pytestmark = pytest.mark.spark


def grouped(env, folder):
    rows = env.from_arrow(pa.table({"k": [i % 7 for i in range(1000)], "v": list(range(1000))}))
    rows.filter(col("v") > 100).group_by("k").agg(s=sum_("v")).write_csv(folder / "out.csv")
    return env.execute()


@pytest.mark.parametrize("tasks_max", [spark_stages.TASKS_MAX, 0], ids=["tasks", "stages"])
def test_stages_tell_of_their_tasks(places, tmp_path, monkeypatch, tasks_max):
    monkeypatch.setattr(spark_stages, "TASKS_MAX", tasks_max)
    result = grouped(places[1], tmp_path)
    *stages, sink = result.vertices
    assert (sink.name, [subtask.rows_out for subtask in sink.subtasks]) == ("Sink: csv", [7])
    assert all(stage.name.startswith("Stage ") for stage in stages)
    # Each task that groups sends on what it has of the seven keys, and all of that is read.
    sent = sum(subtask.rows_out for stage in stages for subtask in stage.subtasks)
    assert sent >= 7
    assert sum(subtask.rows_in for stage in stages for subtask in stage.subtasks) == sent
    assert all(subtask.attempts == 1 for stage in stages for subtask in stage.subtasks)
    assert len(stages) >= 2


def test_each_job_has_its_own_stages(places, tmp_path):
    first, second = (grouped(places[1], tmp_path / name) for name in ("a", "b"))
    names = [
        {vertex.name for vertex in result.vertices if vertex.name.startswith("Stage")} for result in (first, second)
    ]
    assert names[0]
    assert not names[0] & names[1]


def test_what_spark_has_forgotten_is_missing_and_no_error(places, tmp_path, monkeypatch):
    known = spark_stages._stage_numbers
    monkeypatch.setattr(spark_stages, "_stage_numbers", lambda store, jobs: [10**6, *known(store, [10**6, *jobs])])
    result = grouped(places[1], tmp_path)
    assert len([vertex for vertex in result.vertices if vertex.name.startswith("Stage")]) >= 2


def test_what_one_thread_has_begun_another_one_ends(spark):
    def slow(batches):
        time.sleep(120)
        yield from batches

    def run():
        with pytest.raises(Exception, match="cancel"), spark_stages.tagged(spark, "slow"):
            spark.range(1).mapInArrow(slow, "id BIGINT").toArrow()

    def active():
        return list(spark.sparkContext.statusTracker().getActiveJobsIds())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive() and not active():
        time.sleep(0.05)
    spark_stages.interrupt(spark, "slow")
    thread.join(60)
    assert not thread.is_alive()
    assert active() == []
