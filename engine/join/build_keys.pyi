from collections.abc import Sequence

import pyarrow as pa

from engine.join.hash_join import HashJoin

def build_keys(
    owner: HashJoin, positions: Sequence[int], rows_max: int, bytes_max: int
) -> list[list[pa.Array]] | None: ...
