from collections.abc import Sequence
from typing import final

import pyarrow as pa

from engine.expressions.time_directives import Step

@final
class MomentWriter:
    """Dates and timestamps as texts, by the steps of a format."""

    def __new__(cls, steps: Sequence[Step]) -> MomentWriter: ...
    def write(self, local: pa.Array, ticks_per_day: int, offsets: pa.Array | None, zones: pa.Array | None) -> pa.Array:
        """Return the texts of local times, as strings; ArrowCapacityError where they are more than 2 GiB."""
