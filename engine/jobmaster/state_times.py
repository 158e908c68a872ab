"""StateTimes: when an attempt entered each of its states, eight bytes for each.

    entered(entered(b"", CREATED, 5), SCHEDULED, 9) ─► bytes of 16 ─► times_of ─► {CREATED: 5, SCHEDULED: 9}

    entry    u8 number of the state │ u56 milliseconds since 1970        little-endian

A dict with its numbers is four times as large, and there is one for each attempt. Pure.

Held by: tests/jobmaster/test_execution_graph.py
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final

from engine.jobmaster.execution_state import ExecutionState

_NUMBERS: Final = {state: number for number, state in enumerate(ExecutionState)}
_NAMES: Final = tuple(map(str, ExecutionState))
_ENTRY: Final = Struct("<Q")


def entered(times: bytes, state: ExecutionState, time_ms: int) -> bytes:
    """Return times with that of one more state, which is not before the last one."""
    last_ms = int.from_bytes(times[-7:], "little") if times else 0
    return times + (max(time_ms, last_ms) << 8 | _NUMBERS[state]).to_bytes(8, "little")


def packed_times(times: Mapping[str, int]) -> bytes:
    """Return times by the names of states, packed."""
    packed = b""
    for name, time_ms in times.items():
        packed = entered(packed, ExecutionState(name), time_ms)
    return packed


def times_of(packed: bytes) -> dict[str, int]:
    """Return the time of each state by its name, in the order in which they were entered."""
    times = {}
    for (entry,) in _ENTRY.iter_unpack(packed):
        times[_NAMES[entry & 255]] = entry >> 8
    return times
