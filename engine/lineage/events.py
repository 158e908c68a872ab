"""Events: START when ``execute`` begins, COMPLETE or FAIL when it ends, by the client of OpenLineage.

    with observed(sinks, name, configuration) as run:     nothing, unless ``lineage.enabled``
        run.result = ...

Where events go is the client's own configuration (OPENLINEAGE_CONFIG, OPENLINEAGE_URL, openlineage.yml): a file, a
server, a broker. ``OPENLINEAGE_PARENT_ID`` (namespace/name/run) is the run of a scheduler that the job is part of. An
event that cannot be made or sent is a warning in the log, and never touches the job.

Source: OpenLineage 2-0-2
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from engine import __version__
from engine.config.lineage_options import LINEAGE_ENABLED, LINEAGE_NAMESPACE
from engine.config.loader import Configuration
from engine.errors import ConfigurationError
from engine.graph.plan import Plan, Sink, Source
from engine.lineage.columns import Origin, Rows, origins
from engine.lineage.datasets import Dataset, dataset_of, output_of
from engine.lowering.logical_node import LogicalNode, build_plan

if TYPE_CHECKING:
    from engine.client.job_result import JobResult

_PRODUCER: Final = f"https://pypi.org/project/drey-engine/{__version__}"
_log = logging.getLogger(__name__)


class Run:
    """One execution. ``result``: of the job, once it has one."""

    def __init__(self) -> None:
        self.result: JobResult | None = None


@contextmanager
def observed(sinks: Sequence[LogicalNode], name: str, configuration: Configuration) -> Iterator[Run]:
    """Tell of a job that runs within: its beginning and its end."""
    run = Run()
    if not configuration.get(LINEAGE_ENABLED):
        yield run
        return
    emitter = Emitter(build_plan(sinks, name), name, configuration.get(LINEAGE_NAMESPACE))
    emitter.tell("START")
    try:
        yield run
    except BaseException as error:
        emitter.tell("FAIL" if isinstance(error, Exception) else "ABORT", error=error)
        raise
    emitter.tell("COMPLETE", result=run.result)


class Emitter:
    """The events of one run."""

    def __init__(self, plan: Plan, name: str, namespace: str) -> None:
        try:
            from openlineage.client import OpenLineageClient
            from openlineage.client.uuid import generate_new_uuid
        except ImportError as error:
            raise ConfigurationError(
                f"lineage.enabled needs the extra: pip install 'drey-engine[lineage]' ({error})"
            ) from None
        self._plan, self._name, self._namespace = plan, name, namespace
        self._run_id = str(generate_new_uuid())
        self._client: Any = None
        self._guarded(lambda: setattr(self, "_client", OpenLineageClient()))

    def tell(self, state: str, *, result: JobResult | None = None, error: BaseException | None = None) -> None:
        """Send the event of a state."""

        def send() -> None:
            self._client.emit(self._event(state, result, error))

        if self._client is not None:
            self._guarded(send)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # lineage is beside the job
            _log.warning("no event of OpenLineage was sent: %s: %s", type(error).__name__, error)

    def _event(self, state: str, result: JobResult | None, error: BaseException | None) -> Any:
        from openlineage.client.event_v2 import Job, RunEvent, RunState
        from openlineage.client.event_v2 import Run as RunOfEvent
        from openlineage.client.generated.job_type_job import JobTypeJobFacet

        kind = JobTypeJobFacet("BATCH", "DREY", "JOB", producer=_PRODUCER)
        job = Job(self._namespace, self._name, {"jobType": kind})
        return RunEvent(
            eventType=getattr(RunState, state),
            eventTime=datetime.now(UTC).isoformat(),
            run=RunOfEvent(self._run_id, _run_facets(error)),
            job=job,
            inputs=self._inputs(),
            outputs=self._outputs(result),
            producer=_PRODUCER,
        )

    def _inputs(self) -> list[Any]:
        from openlineage.client.event_v2 import InputDataset

        found = {}
        for node in self._plan.nodes:
            named = dataset_of(node.operator) if isinstance(node.operator, Source) else None
            if named is not None and named not in found:
                found[named] = InputDataset(*named, facets={"schema": _schema(node.schema.columns)})
        return list(found.values())

    def _outputs(self, result: JobResult | None) -> list[Any]:
        from openlineage.client.event_v2 import OutputDataset

        rows, found = origins(self._plan), []
        for place, number in enumerate(self._plan.sinks):
            node = self._plan.nodes[number]
            named = output_of(node.operator.spec) if isinstance(node.operator, Sink) else None
            if named is None:
                continue
            columns = self._plan.nodes[node.inputs[0]].schema.columns
            facets = {"schema": _schema(columns), "columnLineage": self._lineage(rows[node.inputs[0]])}
            statistics = _statistics(result, place, len(self._plan.sinks))
            found.append(OutputDataset(*named, facets=facets, outputFacets=statistics))
        return found

    def _lineage(self, rows: Rows) -> Any:
        from openlineage.client.generated.column_lineage_dataset import ColumnLineageDatasetFacet, Fields

        fields = {name: Fields(self._fields(found, "DIRECT")) for name, found in rows.columns.items()}
        decided = self._fields(rows.decided_by, "INDIRECT")
        return ColumnLineageDatasetFacet(fields, dataset=decided, producer=_PRODUCER)

    def _fields(self, found: frozenset[Origin], kind: str) -> list[Any]:
        """Return the origins that have a name, with all that became of each."""
        from openlineage.client.generated.column_lineage_dataset import InputField, Transformation

        ways: dict[tuple[Dataset, str], set[str]] = {}
        for one in found:
            source = self._plan.nodes[one.source].operator
            named = dataset_of(source) if isinstance(source, Source) else None
            if named is not None:
                ways.setdefault((named, one.column), set()).add(one.subtype)
        return [
            InputField(*named, field=column, transformations=[Transformation(kind, way) for way in sorted(subtypes)])
            for (named, column), subtypes in sorted(ways.items())
        ]


def _run_facets(error: BaseException | None) -> dict[str, Any]:
    from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
    from openlineage.client.generated.parent_run import Job, ParentRunFacet, Run
    from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet

    facets: dict[str, Any] = {
        "processing_engine": ProcessingEngineRunFacet(__version__, "Drey", __version__, producer=_PRODUCER)
    }
    if error is not None:
        said = f"{type(error).__name__}: {error}"
        facets["errorMessage"] = ErrorMessageRunFacet(said, "PYTHON", producer=_PRODUCER)
    namespace, _, rest = os.environ.get("OPENLINEAGE_PARENT_ID", "").partition("/")
    name, _, run_id = rest.rpartition("/")
    if run_id:
        facets["parent"] = ParentRunFacet(run=Run(run_id), job=Job(namespace, name), producer=_PRODUCER)
    return facets


def _schema(columns: Sequence[Any]) -> Any:
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields

    fields = [SchemaDatasetFacetFields(one.name, one.type_text) for one in columns]
    return SchemaDatasetFacet(fields, producer=_PRODUCER)


def _statistics(result: JobResult | None, place: int, count: int) -> dict[str, Any]:
    """Return rows and bytes of an output, where the job says which of its sinks it is."""
    from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet

    ends = [one for vertex in ([] if result is None else result.vertices) for one in vertex.operators]
    sinks = sorted((one for one in ends if " sink" in one.name), key=lambda one: one.node_id)
    if len(sinks) != count:
        return {}
    found = sinks[place]
    facet = OutputStatisticsOutputDatasetFacet(found.rows_in, found.bytes_out, producer=_PRODUCER)
    return {"outputStatistics": facet}
