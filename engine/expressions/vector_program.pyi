from collections.abc import Collection, Sequence
from typing import Any

from engine.records.row_mask import Mask

def spare_bytes() -> int: ...

class VectorProgram:
    def __init__(
        self,
        kinds: list[str],
        inputs: list[int],
        constants: list[tuple[int, Any]],
        steps: Sequence[tuple[str, int, int, int, int, int]],
        outputs: list[tuple[int, Any]],
    ) -> None: ...
    def run(self, batch: Any, narrow: Collection[int] = (), places: list[int] | None = None) -> list[Any] | None: ...
    def mask(self, batch: Any, places: list[int] | None = None) -> Mask | None: ...
