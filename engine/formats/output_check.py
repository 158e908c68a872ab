"""The outputs of a job: where each lands, and what is refused before anything starts.

    sinks_of(job graph) ─► target_of(spec) ─► staging_of(spec, job id)
    check_outputs(specs)                         PlanError: one that cannot be written, or two that are in each other

Held by: tests/formats/test_output_check.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.commit.output_target import OutputTarget
from engine.errors import PlanError
from engine.formats.registry import sink_format_of
from engine.graph.deployment import Staging
from engine.graph.job_graph import JobGraph
from engine.graph.operator_descriptor import SinkOperator
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId


def sinks_of(job_graph: JobGraph) -> list[SinkOperator]:
    """Return the sinks of a job by their index."""
    sinks = [
        step.operator
        for vertex in job_graph.vertices
        for step in vertex.chain
        if isinstance(step.operator, SinkOperator)
    ]
    return sorted(sinks, key=lambda sink: sink.sink_index)


def target_of(spec: SinkSpec) -> OutputTarget:
    """Return the entry of the place where a sink's output lands."""
    return sink_format_of(spec).target(spec)


def staging_of(spec: SinkSpec, job_id: JobId) -> Staging:
    """Return the place where a job stages the output of a sink."""
    target = target_of(spec)
    return target.staging(target.resolved(spec), job_id)


def check_outputs(sinks: Iterable[SinkSpec]) -> None:
    """Raise PlanError when an output cannot be written."""
    outputs: dict[str, str] = {}
    for spec in sinks:
        if "\0" in spec.path:
            raise PlanError(f"output {spec.path!r} cannot be created: a path cannot hold a null character")
        target = target_of(spec)
        output = target.resolved(spec)
        if output in outputs:
            raise PlanError(f"two outputs of this job go to {spec.path}")
        outputs[output] = spec.path
        target.check(spec, output)
    for output, path in outputs.items():
        for around in _around(output):
            if around in outputs:
                raise PlanError(f"output {path} lies inside output {outputs[around]}")


def _around(output: str) -> Iterator[str]:
    """Yield the folders around an output."""
    while "/" in output:
        output = output.rpartition("/")[0]
        yield output or "/"
