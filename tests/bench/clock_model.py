"""A model of the clock on more processors than this machine has, from what one and two subtasks and the lock measure.

    clock(n) = serial + max(rest / n, locked)

    serial     seconds in which one thread works (planning, scheduling, results): 2 · clock(2) - clock(1), 0 at least
    locked     processor seconds with the interpreter's lock held, which one thread of the process has at a time
    rest       clock(1) - serial: what threads share

It knows neither the bandwidth of memory nor of disks, and takes what is shared for shared evenly: it says what is
possible at best, and which part is the limit.
"""

from dataclasses import dataclass

PROCESSORS = (4, 8, 16, 64)


@dataclass(frozen=True)
class Parts:
    """Seconds of some queries: in one thread, with the lock, and of what threads share."""

    serial: float
    locked: float
    rest: float

    @classmethod
    def measured(cls, clock_1: float, clock_2: float, lock_share: float) -> "Parts":
        """Return the parts that clocks with one and two subtasks, and the share of the lock, say."""
        serial = min(max(2 * clock_2 - clock_1, 0.0), clock_1)
        rest = clock_1 - serial
        return cls(serial, lock_share * rest, rest)

    def clock(self, processors: int) -> float:
        """Return the seconds on so many processors."""
        return self.serial + max(self.rest / processors, self.locked)

    @property
    def limit(self) -> float:
        """How many times faster than one thread any number of processors is."""
        return (self.serial + self.rest) / (self.serial + self.locked) if self.serial + self.locked else float("inf")


def said(parts: Parts) -> str:
    """Return the sentence of the model."""
    clocks = ", ".join(f"{count}: {parts.clock(count):.2f}" for count in PROCESSORS)
    return (
        f"Model, not measured: of {parts.serial + parts.rest:.2f} s in one thread {parts.serial:.2f} s stay in one,"
        f" {parts.locked:.2f} s hold the lock; seconds on processors: {clocks}; at most {parts.limit:.1f} times faster."
    )
