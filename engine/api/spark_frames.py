"""The maker of Spark DataFrames from data sets: a room above the API, which registers itself as the executors do.

Held by: tests/spark/test_frames.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.errors import NotYetSupportedError

if TYPE_CHECKING:
    from engine.api.calls import Runner
    from engine.lowering.logical_node import LogicalNode

#: function from (environment, node of a data set, session) to the DataFrame
FrameMaker = Callable[["Runner", "LogicalNode", Any], Any]

_makers: list[FrameMaker] = []


def register_frame_maker(maker: FrameMaker) -> None:
    """Register a function that makes DataFrames, in place of an earlier one."""
    _makers[:] = [maker]


def frame_maker() -> FrameMaker:
    """Return the maker of DataFrames; NotYetSupportedError where none is registered."""
    if not _makers:
        raise NotYetSupportedError("to_spark without engine.targets")
    return _makers[0]
