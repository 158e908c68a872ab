from collections.abc import Sequence
from typing import Any

import pyarrow as pa

def array_of(values: Sequence[Any], field: pa.Field) -> pa.Array: ...
def described(field: pa.Field) -> str: ...

class ColumnTarget:
    field: pa.Field
    unfit: list[Any] | None
    def __init__(self, field: pa.Field) -> None: ...
