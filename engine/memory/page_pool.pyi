from types import TracebackType
from typing import Self, final

@final
class PagePool:
    """The pages that one owner may hold; its take and give are for kernels (see page_pool.pxd)."""

    owner: str
    page_size: int
    page_limit: int
    pages_used: int
    pages_peak: int
    @property
    def closed(self) -> bool: ...
    def shrink(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
