from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

class MisfitError(pa.ArrowInvalid):  # type: ignore[misc]
    """A value does not fit; raised where Arrow raises ArrowInvalid for those that it refuses."""

    reason: str
    index: int
    def __init__(self, reason: str, index: int = -1) -> None: ...

def may_lose(data_type: pa.DataType) -> bool:
    """Whether Arrow takes values for the type that lose a part."""

def check_zeros(values: Sequence[Any], array: pa.Array) -> None:
    """Raise MisfitError for the first decimal that Arrow has made 0 of and that is none."""

def check_values(values: Iterable[Any], data_type: pa.DataType) -> None:
    """Raise MisfitError for the first value that would lose something as one of the type."""
