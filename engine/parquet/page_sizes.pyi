from typing import NamedTuple

from engine.parquet.fetched_bytes import FetchedBytes

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
    source: int | FetchedBytes, position: int, end: int, value_count: int, size_max: int, expansion: int
) -> PageSizes: ...
