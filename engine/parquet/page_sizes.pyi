from typing import NamedTuple

class PageSizes(NamedTuple):
    page_bytes: int
    compressed_bytes: int
    dictionary_bytes: int
    dictionary_values: int
    is_complete: bool
    position: int
    bad_size: str
    bad_count: int

def page_sizes(
    descriptor: int, position: int, end: int, value_count: int, size_max: int, expansion: int
) -> PageSizes: ...
