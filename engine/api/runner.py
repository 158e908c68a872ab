"""Runner: what a data set needs of its environment. The environment knows data sets; they know only this.

Held by: tests/api/test_environment.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from engine.api.result_stream import ResultStream
    from engine.client.job_result import JobResult
    from engine.config.loader import Configuration
    from engine.graph.source_spec import SinkSpec
    from engine.lowering.logical_node import LogicalNode


class Runner(Protocol):
    """Takes sinks and runs what a node needs."""

    @property
    def configuration(self) -> Configuration:
        """The options of the environment."""
        ...

    @property
    def target(self) -> str:
        """The target of jobs: local, cluster or spark."""
        ...

    def add_sink(self, sink: LogicalNode) -> None:
        """Add a sink to the next job."""
        ...

    def run_to_table(self, node: LogicalNode) -> pa.Table:
        """Run what a node needs and return its rows."""
        ...

    def run_to_sink(self, node: LogicalNode, spec: SinkSpec, what: str) -> JobResult:
        """Run what a node needs, into one output."""
        ...

    def temporary_folder(self) -> Path:
        """Return the folder for temporary data."""
        ...

    def number_of(self, node: LogicalNode) -> int:
        """Return the number under which expressions speak of a node."""
        ...

    def node_of(self, number: int) -> LogicalNode:
        """Return the node of a number; PlanError for one of another environment."""
        ...

    def stream(self, node: LogicalNode) -> ResultStream:
        """Begin a job of what a node needs, and return its rows as they come."""
        ...

    def sample(self, node: LogicalNode) -> pa.Table:
        """Run what a node needs while a program is being written, and return its rows."""
        ...

    def explain_said(self, node: LogicalNode) -> str:
        """Return the plan of a node as the program says it."""
        ...

    def explain_node(self, node: LogicalNode) -> str:
        """Return the explained plan of a node."""
        ...

    def analyze_node(self, node: LogicalNode, *, form: str) -> str:
        """Run what a node needs, and return the plan beside what its operators did."""
        ...
