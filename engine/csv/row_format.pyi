from enum import IntEnum
from typing import Any

class FieldKind(IntEnum):
    TEXT = 0
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    UINT8 = 5
    UINT16 = 6
    UINT32 = 7
    UINT64 = 8
    DOUBLE = 9

class Quoting(IntEnum):
    MINIMAL = 0
    ALWAYS = 1
    NEVER = 2

class RowFormatter:
    refused_column: int
    def __init__(self, column_count: int, delimiter: int, decimal: int = 46, null_text: bytes = b"") -> None: ...
    def format(
        self, columns: list[tuple[Any, FieldKind]], row_count: int, quoting: list[Quoting] | None = None
    ) -> memoryview | None: ...
