from typing import Any

import pyarrow as pa

class ColumnValues:
    name: str
    array: pa.Array
    def __init__(self, name: str, array: pa.Array) -> None: ...
    def values(self) -> list[Any]: ...

def python_values(name: str, column: pa.Array | pa.ChunkedArray) -> list[Any]: ...
