"""Python's view of key groups."""

from collections.abc import Sequence
from typing import final

import pyarrow as pa

LOWER_BOUND_MAX_PARALLELISM: int
UPPER_BOUND_MAX_PARALLELISM: int

@final
class KeyGroupAssigner:
    """Key groups of the rows of batches of one schema."""

    max_parallelism: int
    column_count: int
    def __new__(cls, schema: pa.Schema, columns: Sequence[int], max_parallelism: int) -> KeyGroupAssigner: ...
    def key_groups(self, batch: pa.RecordBatch) -> list[int]:
        """Return the key group of each row; DataError when a key is null."""
    def java_hash_codes(self, batch: pa.RecordBatch) -> list[int]:
        """Return Java's hash code of each row's key; DataError when a key is null."""

def murmur_hash(code: int) -> int: ...
def key_group(hash_code: int, max_parallelism: int) -> int: ...
def operator_index(key_group: int, max_parallelism: int, parallelism: int) -> int: ...
def key_group_range(max_parallelism: int, parallelism: int, index: int) -> tuple[int, int]: ...
def default_max_parallelism(parallelism: int) -> int: ...
