"""HandedTarget: rows that tasks hand to the client of their own process.

    client    with HandedResult(place) as result:    the job runs ─► result.parts
    tasks     handed_result(place).staged[name] = part             of each attempt that comes to its end
    the end   decided ─► publish: the parts of the attempts that count, in the order of their rows

As with files an attempt's rows are nowhere before they are decided on, and those of one that is repeated are not taken
twice. What a part is, its writer and its reader know (``engine.connectors.handed_writer``): the first rows are in
memory, those beyond a bound in a file. A result belongs to its client and goes with it, whatever became of the job.

Thread: parts are staged by tasks, one name each; everything else happens in the client's ``with``.

Held by: tests/commit/test_handed_target.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from engine.commit.decision import DecidedOutput
from engine.commit.output_target import OutputTarget
from engine.errors import PlanError
from engine.graph.deployment import Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId


class HandedResult:
    """The rows of one job for its client; there within ``with``. ``place``: another one for each result."""

    def __init__(self, place: str) -> None:
        self._place = place
        #: parts of attempts that have ended, by name
        self.staged: dict[str, Any] = {}
        #: parts of the job that has finished
        self.parts: tuple[Any, ...] = ()

    def __enter__(self) -> Self:
        _results[self._place] = self
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        del _results[self._place]


#: results that clients of this process wait for
_results: Final[dict[str, HandedResult]] = {}


def handed_result(place: str) -> HandedResult:
    """Return a result that a client waits for; PlanError where it is not this process's."""
    result = _results.get(place)
    if result is None:
        raise PlanError(f"no client of this process waits for {place}")
    return result


class HandedTarget(OutputTarget):
    """Results of clients in this process."""

    name = "handed"
    is_at_once = True

    def resolved(self, spec: SinkSpec) -> str:
        """Return the place."""
        return spec.path

    def staging(self, output: str, job_id: JobId) -> Staging:
        """Return the place itself, where files of large parts lie too."""
        return Staging(output, output, self.name)

    def prepare(self, spec: SinkSpec, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Raise PlanError where no client waits."""
        handed_result(staging.output)

    def publish(
        self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None], *, is_durable: bool
    ) -> Mapping[str, int | str]:
        """Make the staged parts the result."""
        result = handed_result(output.target)
        result.parts = tuple(result.staged[file.name] for file in output.files)
        after_step("handed")
        return {}

    def clean(self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]) -> None:
        """Leave everything to the client."""

    def abort(self, staging: Staging, job_id: JobId) -> None:
        """Drop what was staged."""
        if self.is_there(staging):
            _results[staging.output].staged.clear()

    def is_there(self, staging: Staging) -> bool:
        """Return whether a client waits for it."""
        return staging.output in _results
