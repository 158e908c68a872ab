"""StateTimes: when an attempt entered each of its states, eight bytes for each.

    entered(entered(b"", CREATED, 5), SCHEDULED, 9) ─► bytes of 16 ─► times_of ─► {CREATED: 5, SCHEDULED: 9}

    entry    u8 number of the state │ u56 milliseconds since 1970        little-endian

A dict with its numbers is four times as large, and there is one for each attempt. Pure.

Held by: tests/jobmaster/test_execution_graph.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Final, TypeVar

from engine.jobmaster.execution_state import ExecutionState

_STATES: Final = tuple(ExecutionState)
_NUMBERS: Final = {state: number for number, state in enumerate(_STATES)}
_NAMES: Final = tuple(state.value for state in _STATES)
_ENTRY: Final = Struct("<Q")
_Key = TypeVar("_Key")


def entered(times: bytes, state: ExecutionState, time_ms: int) -> bytes:
    """Return times with that of one more state."""
    return times + (time_ms << 8 | _NUMBERS[state]).to_bytes(8, "little")


def packed_times(times: Mapping[str, int]) -> bytes:
    """Return times by the names of states, packed."""
    packed = b""
    for name, time_ms in times.items():
        packed = entered(packed, ExecutionState(name), time_ms)
    return packed


def last_time_ms(packed: bytes) -> int:
    """Return the time of the state that was entered last, 0 where there is none."""
    return int.from_bytes(packed[-7:], "little") if packed else 0


def times_of(packed: bytes) -> dict[ExecutionState, int]:
    """Return the time of each state, in the order in which they were entered."""
    return _times_by(_STATES, packed)


def named_times_of(packed: bytes) -> dict[str, int]:
    """Return the time of each state by its name, in the order in which they were entered."""
    return _times_by(_NAMES, packed)


def _times_by(keys: Sequence[_Key], packed: bytes) -> dict[_Key, int]:
    """Return times by the keys of states, which are in the order of their numbers."""
    times = {}
    for (entry,) in _ENTRY.iter_unpack(packed):
        times[keys[entry & 255]] = entry >> 8
    return times
