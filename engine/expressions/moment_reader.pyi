from collections.abc import Sequence
from typing import final

import pyarrow as pa

from engine.expressions.time_directives import Step

@final
class MomentReader:
    """Dates and timestamps from texts, by the steps of a format."""

    def __new__(cls, steps: Sequence[Step]) -> MomentReader: ...
    def read(self, texts: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the microseconds since 1970 of string or large string arrays, and which of them are right."""
