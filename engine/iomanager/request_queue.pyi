from typing import Self, final

@final
class RequestQueue:
    """Requests to one disk in one direction and the thread that executes them."""

    depth: int
    name: str
    def __new__(cls, name: str, depth: int = 8) -> Self: ...
    def close(self) -> None: ...
