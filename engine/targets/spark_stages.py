"""The jobs of Spark that one of ours is: how they are ended, and what Spark says of their stages.

    tag of the job ─► Spark's jobs that have it ─► their stages, tasks as JSON ─► rows and bytes in, out, spilled

Rows are those of the attempt of a task that counted, as the status store of the session's process has them; it forgets
the oldest stages of a session that has had a thousand (``spark.ui.retainedStages``), and what it has forgotten is
missing, no more. Rows of a stage are what it reads from files and exchanges, and what it writes to exchanges and files:
what lies between is one with them. Each question to the JVM takes as long as a small task: there are few.

Limits: a session of Spark Connect does not show its stages; a stage of more than TASKS_MAX tasks is one line.
Held by: tests/dataframes/test_spark_stages.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.client.job_result import SubtaskResult, VertexResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: number of tasks up to which a stage shows each by itself
TASKS_MAX: Final = 64
_PATIENCE_MS: Final = 2000


@contextmanager
def tagged(session: SparkSession, tag: str) -> Iterator[None]:
    """Tag all of this thread's requests to Spark, so that its jobs can be cancelled and found."""
    context = getattr(session, "_sc", None)
    if context is None:
        session.addTag(tag)
    else:
        context.addJobTag(tag)
        # Else a task that waits for a function in Python hears that it is to end when that has ended.
        context.setInterruptOnCancel(True)
    try:
        yield
    finally:
        if context is None:
            session.removeTag(tag)
        else:
            context.removeJobTag(tag)


def interrupt(session: SparkSession, tag: str) -> None:
    """End the jobs with a tag, from whatever thread.

    Without Connect a session's ``interruptTag`` ends nothing that another thread has begun, and says nothing of it.
    """
    context = getattr(session, "_sc", None)
    if context is None:
        session.interruptTag(tag)
    else:
        context.cancelJobsWithTag(tag)


def stage_results(session: SparkSession, tag: str) -> tuple[VertexResult, ...]:
    """Return the stages of all jobs with a tag that have run, in the order in which they began."""
    context = getattr(session, "_sc", None)
    if context is None:
        return ()
    scala = context._jsc.sc()
    with suppress(Exception):  # numbers that come too late are missing, no more
        scala.listenerBus().waitUntilEmpty(_PATIENCE_MS)
    store = scala.statusStore()
    to_json = _json_writer(context._gateway)
    found = []
    for number in _stage_numbers(store, scala.statusTracker().getJobIdsForTag(tag)):
        with suppress(Exception):  # the store forgets stages
            stage = store.lastStageAttempt(number)
            if stage.status().name() != "COMPLETE":
                continue
            has_tasks = stage.numTasks() <= TASKS_MAX
            asked = store.taskList(number, stage.attemptId(), TASKS_MAX) if has_tasks else stage
            told = msgspec.json.decode(to_json(asked))
            subtasks = _subtasks(told) if has_tasks else (_whole(told),)
            found.append(VertexResult(f"Stage {number}: {stage.name()}", subtasks))
    return tuple(found)


@cache
def _json_writer(gateway: Any) -> Callable[[Any], str]:
    """Return Spark's writer of JSON; a new one learns every class anew."""
    mapper = gateway.jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
    to_json: Callable[[Any], str] = mapper.writeValueAsString
    return to_json


def _stage_numbers(store: Any, jobs: Any) -> list[int]:
    numbers: set[int] = set()
    for job in jobs:
        with suppress(Exception):  # the store forgets jobs
            numbers.update(int(each) for each in store.job(job).stageIds().mkString(" ").split())
    return sorted(numbers)


def _subtasks(attempts: list[dict[str, Any]]) -> tuple[SubtaskResult, ...]:
    done = {task["index"]: task for task in attempts if task["status"] == "SUCCESS"}
    return tuple(_subtask(task) for _, task in sorted(done.items()))


def _subtask(task: Mapping[str, Any]) -> SubtaskResult:
    attempts = task["attempt"] + 1
    metrics = task.get("taskMetrics")
    if metrics is None:
        return SubtaskResult(task["index"], 0, 0, 0, 0, 0, attempts=attempts)
    read, fetched = metrics["inputMetrics"], metrics["shuffleReadMetrics"]
    written, sent = metrics["outputMetrics"], metrics["shuffleWriteMetrics"]
    return SubtaskResult(
        task["index"],
        read["recordsRead"] + fetched["recordsRead"],
        written["recordsWritten"] + sent["recordsWritten"],
        read["bytesRead"] + fetched["localBytesRead"] + fetched["remoteBytesRead"],
        written["bytesWritten"] + sent["bytesWritten"],
        metrics["diskBytesSpilled"],
        attempts=attempts,
    )


def _whole(stage: Mapping[str, Any]) -> SubtaskResult:
    return SubtaskResult(
        0,
        stage["inputRecords"] + stage["shuffleReadRecords"],
        stage["outputRecords"] + stage["shuffleWriteRecords"],
        stage["inputBytes"] + stage["shuffleReadBytes"],
        stage["outputBytes"] + stage["shuffleWriteBytes"],
        stage["diskBytesSpilled"],
    )
