"""Spark as a target: the plan as DataFrames, sinks staged by its tasks and published here.

    flink-run -t spark [--master URL | --remote sc://HOST:PORT] JOB.py          Environment(target="spark")

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from engine.api.kept_jobs import KeptJob
from engine.client.job_result import JobResult, SubtaskResult, VertexResult
from engine.client.notebook_progress import listener_of_job
from engine.client.termination import after, leaving_on_termination, uninterrupted
from engine.config.command_line import current_command_line
from engine.config.loader import Configuration, load_configuration
from engine.config.options import PARALLELISM_DEFAULT, SPARK_MASTER, SPARK_REMOTE
from engine.dataframes.fragments import fragment_settings
from engine.dataframes.frame import Fragments
from engine.dataframes.needed_settings import with_needed_settings
from engine.dataframes.outputs import Outputs
from engine.dataframes.source_frames import is_read_by_spark
from engine.dataframes.translator import PlanTranslator
from engine.errors import JobCancelledError
from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.plan import Plan, Project, Sink
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.rules import paged_sorts, projection_pruning
from engine.spark.failures import engine_error, unlogged
from engine.spark.session import open_session
from engine.targets.local import LocalExecutor
from engine.targets.spark_modules import ship_modules
from engine.targets.spark_stages import interrupt, stage_results, tagged

#: seconds that an interrupted client waits for the end of Spark's tasks
_CANCEL_S: Final = 15.0
_Result = TypeVar("_Result")


def run_fragment(plan: Plan, settings: Mapping[str, object]) -> None:
    """Run a plan in a worker of Spark."""
    LocalExecutor().execute(plan, load_configuration(settings))


def pruned(plan: Plan) -> Plan:
    """Return the plan without unused columns: a fragment computes all that it is told, and a column may fail.

    Sorts whose rows are taken by their place are marked as for any other target.
    Files that Spark reads keep their columns: it leaves them out itself, and knows then how small the rest is.
    """
    logical = LogicalPlan(plan)
    paged_sorts.apply(logical)
    projection_pruning.apply(logical)
    for node in logical.order():
        whole = plan.node(node.id) if node.id < len(plan.nodes) else node
        if node != whole and is_read_by_spark(whole):
            below = logical.insert(whole.operator, (), whole.schema, whole)
            kept = tuple(NamedExpression(name, ColumnRef(name)) for name in node.schema.names)
            logical.replace(node, operator=Project(kept), inputs=(below.id,))
    return logical.to_plan()


class SparkExecutor:
    """Runs plans on Spark."""

    is_dry = False
    keeps_jobs = False
    is_in_process = False
    takes_said = True

    def release(self, configuration: Configuration) -> None:
        """Do nothing: the session stays for other environments of the process, and ends with it."""

    def default_parallelism(self, configuration: Configuration) -> int:
        """Return ``parallelism.default``, else how many tasks Spark runs at a time."""
        chosen = configuration.get(PARALLELISM_DEFAULT)
        if chosen is not None:
            return int(chosen)
        context = getattr(_session("drey", configuration), "_sc", None)
        return int(context.defaultParallelism) if context is not None else 8

    def execute_again(self, kept: KeptJob, sink: SinkSpec, configuration: Configuration) -> JobResult | None:
        """Run nothing: Spark plans each job."""
        return None

    def execute(self, plan: Plan, configuration: Configuration, kept: KeptJob | None = None) -> JobResult:
        """Run a plan to its end; the process's listener is told what happens."""
        session = _session(plan.name or "drey", configuration)
        plan = pruned(plan)
        listener = listener_of_job()
        job_id = JobId.random()
        started = time.monotonic()
        specs = [_spec(plan, sink) for sink in plan.sinks]
        fragments = Fragments(run_fragment, fragment_settings(configuration.as_texts()), _module_path())
        translator = PlanTranslator(plan, session, fragments, self.default_parallelism(configuration))
        outputs = Outputs(job_id, specs)
        is_submitted = False
        tag = f"drey-{uuid.uuid4().hex}"
        try:
            with unlogged(), with_needed_settings(session), leaving_on_termination():
                _interruptible(session, tag, lambda: ship_modules(session))
                frames = _interruptible(
                    session, tag, lambda: [translator.frame(plan.node(sink).inputs[0]) for sink in plan.sinks]
                )
                listener.on_submitted(job_id.value, plan.name)
                is_submitted = True
                rows = _interruptible(
                    session, tag, lambda: [outputs.write(index, frame) for index, frame in enumerate(frames)]
                )
            with _errors_told():
                outputs.publish()
        except BaseException as error:
            known = engine_error(error) if isinstance(error, PySparkException | Py4JError) else error
            with uninterrupted():
                outputs.abort()
                if is_submitted:
                    is_cancel = isinstance(known, JobCancelledError) or not isinstance(known, Exception)
                    with after(known):
                        listener.on_failed(job_id.value, "CANCELED" if is_cancel else "FAILED", known)
            if known is not error:
                # Alone: the way through the JVM says nothing that the program's author could use.
                raise known from None
            raise
        runtime_ms = round(1000 * (time.monotonic() - started))
        vertices = (*stage_results(session, tag), *_vertices(specs, rows))
        result = JobResult(job_id.value, plan.name, "FINISHED", runtime_ms, vertices)
        listener.on_finished(result)
        return result


@contextmanager
def _errors_told() -> Iterator[None]:
    """Raise what goes wrong inside as an error of the engine."""
    try:
        yield
    except Exception as error:
        raise engine_error(error) from None


def _interruptible(session: SparkSession, tag: str, work: Callable[[], _Result]) -> _Result:
    """Do what calls Spark in a thread of its own; what takes the caller away ends Spark's jobs and is raised itself.

    A signal that comes while a thread waits for the JVM leaves that thread's connection unusable.
    """
    done: Future[_Result] = Future()

    def run() -> None:
        try:
            with _errors_told(), tagged(session, tag):
                found = work()
        except BaseException as error:  # raised where the result is waited for
            done.set_exception(error)
        else:
            done.set_result(found)

    thread = threading.Thread(target=run, name="drey-spark-job", daemon=True)
    thread.start()
    try:
        return done.result()
    except BaseException:
        if not done.done():
            with uninterrupted():
                interrupt(session, tag)
                thread.join(_CANCEL_S)
        raise


def _session(name: str, configuration: Configuration) -> SparkSession:
    master = current_command_line().master or configuration.get(SPARK_MASTER)
    return open_session(name, master, configuration.get(SPARK_REMOTE))


def _spec(plan: Plan, sink: int) -> SinkSpec:
    operator = plan.node(sink).operator
    assert isinstance(operator, Sink), "no sink"
    return operator.spec


def _vertices(specs: list[SinkSpec], rows: list[int]) -> tuple[VertexResult, ...]:
    return tuple(
        VertexResult(f"Sink: {spec.format}", (SubtaskResult(0, count, count, 0, 0, 0),))
        for spec, count in zip(specs, rows, strict=True)
    )


def _module_path() -> tuple[str, ...]:
    """Return the module search path of this process, for workers of the same machine."""
    script = current_command_line().script
    own = (str(script.resolve().parent),) if script is not None else ()
    return (*own, *(entry for entry in sys.path if entry))
