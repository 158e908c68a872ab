"""OfTheDriver: what the driver sends to Spark's workers says which Drey made it, and is opened by the same one only.

    class Fragment(OfTheDriver) ─► pickled with the driver's program ─► unpickled in a worker: compared

Executors have an installation of their own, on other machines. Another one would read the plan in another way, or fail
somewhere in the middle of it.

Held by: tests/spark/test_driver_program.py
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from engine.graph.plan import Plan
from engine.rpc.fingerprint import fingerprint
from engine.rpc.program import Program, own_program
from engine.spark.failures import plainly_told

_PROGRAM: Final = "driver's program"


@cache
def _program(role: str) -> Program:
    return own_program(role, fingerprint((Plan,)))


class OfTheDriver:
    """Base of objects that the driver sends to workers; each says which program has made it."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, and the header of this program."""
        return {**self.__dict__, _PROGRAM: _program("Spark-driver").header}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the fields; VersionMismatchError when another program has made them."""
        with plainly_told():
            _program("Spark-worker").check(state.pop(_PROGRAM, None), "Spark's driver")
        self.__dict__.update(state)
