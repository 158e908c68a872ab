from typing import NamedTuple

class IndexPlaces(NamedTuple):
    column_index: int
    column_index_bytes: int
    offset_index: int
    offset_index_bytes: int
    bloom_filter: int
    bloom_filter_bytes: int

class ColumnIndex(NamedTuple):
    is_null: list[bool]
    lowest: list[bytes]
    highest: list[bytes]
    null_counts: list[int]

class PagePlaces(NamedTuple):
    positions: list[int]
    sizes: list[int]
    first_rows: list[int]

def index_places(footer: bytes) -> list[list[IndexPlaces]]: ...
def column_index(data: bytes) -> ColumnIndex: ...
def page_places(data: bytes) -> PagePlaces: ...
