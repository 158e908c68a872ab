"""The table: a line for each run of a program, and below it what does not hold."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.acceptance.lives import Outcome

_MEGABYTE = 1 << 20
_HEAD = """\
| program | seconds | MB over idle, of allowed | MB kept | spilled / input | rows | equal |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Line:
    """A run, what it was allowed, and what is wrong with it."""

    outcome: Outcome
    allowed_bytes: int | None
    rows: int
    #: how the result differs from what was expected, "" when it does not
    difference: str
    wrong: tuple[str, ...]

    @property
    def text(self) -> str:
        outcome = self.outcome
        allowed = "any" if self.allowed_bytes is None else f"{self.allowed_bytes / _MEGABYTE:.0f}"
        # an outcome without vertices is that of a process which has ended
        is_equal = outcome.vertices and not self.difference
        equal = f"error: {outcome.error_class}" if outcome.error else "yes" if is_equal else "no"
        return (
            f"| {outcome.program.name} | {outcome.seconds:.1f} | {outcome.growth_bytes / _MEGABYTE:.0f} of {allowed} "
            f"| {outcome.kept_bytes / _MEGABYTE:.0f} | {outcome.spilled_ratio:.2f} | {self.rows:,} | {equal} |"
        )


def table(lines: Sequence[Line], endings: Sequence[str]) -> str:
    """Return all lines as one table, and what is wrong below."""
    wrong = [f"{line.outcome.program.name}: {each}" for line in lines for each in line.wrong]
    return "\n".join([_HEAD, *(line.text for line in lines), "", *(wrong + list(endings) or ["all of it holds"])])
