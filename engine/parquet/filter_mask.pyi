from collections.abc import Sequence
from typing import final

import pyarrow as pa

from engine.expressions.evaluate import CompiledExpression
from engine.records.adaptive_key_filter import AdaptiveKeyFilter
from engine.records.row_mask import Mask
from engine.records.top_keys import TopTest

class FilterMask:
    """The rows of a batch that a filter leaves."""

    def __init__(
        self,
        by_code: list[CodePart],
        plain: CompiledExpression | None,
        plain_columns: list[str],
        tests: Sequence[AdaptiveKeyFilter | TopTest],
        may_test_first: bool,
    ) -> None: ...
    def mask(self, batch: pa.RecordBatch, passed: AdaptiveKeyFilter | None = None) -> Mask | None: ...

@final
class CodePart:
    """A part of a predicate over one column that comes as a dictionary."""

    column: str
    def __init__(self, column: str, part: CompiledExpression) -> None: ...
    def mask(self, batch: pa.RecordBatch) -> Mask: ...
