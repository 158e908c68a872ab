from collections.abc import Callable, Collection, Sequence
from typing import Any

from engine.records.row_mask import Mask

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
    def project(
        self,
        batch: Any,
        narrow: Collection[int],
        places: list[int] | None,
        passing: Any,
        targets: list[int],
        passed: list[tuple[int, int]],
        schema_of: Callable[[tuple[bool, ...]], Any],
    ) -> Any: ...
    def mask(self, batch: Any, places: list[int] | None = None) -> Mask | None: ...
