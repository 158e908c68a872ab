from collections.abc import Sequence
from typing import final

import pyarrow as pa

from engine.graph.expression import Expression

@final
class Meaning:
    """The key of compiled expressions: the expressions and their schema."""

    expressions: Sequence[Expression]
    schema: pa.Schema
    def __init__(self, expressions: Sequence[Expression], schema: pa.Schema) -> None: ...
    @property
    def encoded_bytes(self) -> int: ...
    @property
    def may_be_kept(self) -> bool: ...
