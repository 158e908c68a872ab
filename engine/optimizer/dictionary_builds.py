"""Size of a hash join's table, where its build side can be dictionary-encoded.

    table_bytes(join, builds_left, build) -> bytes, or None: as many as the rows have

Where build rows differ in their key alone, the join keeps each distinct row once, and a byte for each number between
the lowest and the highest key (``join.dictionary_table``). That is expected where the bounds of one whole key are
known, every row has another key (or one row of each is enough: semi and anti joins), and the other columns have few
combinations: the product of their distinct values, of which a sample knows. When it turns out otherwise, the rows are
kept as any others, and those that do not fit are spilled.
"""

from __future__ import annotations

import math

from engine.graph.dictionary_limits import CELLS_PER_ROW
from engine.graph.plan import Join
from engine.graph.said_operators import JoinType
from engine.statistics.estimates import Estimates

#: largest number of combinations expected: half of those that the join can keep
COMBINATIONS_MAX = 128
#: share of distinct keys in a sample from which they count as unique
UNIQUE_SHARE = 0.99

#: joins that need not know which rows of the build side have matched
_BUILT_LEFT = (JoinType.INNER, JoinType.RIGHT)
_ONE_IS_ENOUGH = (JoinType.SEMI, JoinType.ANTI)
_BUILT_RIGHT = (JoinType.INNER, JoinType.LEFT, *_ONE_IS_ENOUGH)


def table_bytes(join: Join, *, builds_left: bool, build: Estimates) -> float | None:
    """Return the expected bytes of the table over ``build``, None when its rows are expected to differ."""
    keys = join.left_keys if builds_left else join.right_keys
    if len(keys) != 1 or join.how not in (_BUILT_LEFT if builds_left else _BUILT_RIGHT) or join.condition is not None:
        return None
    if join.how in (JoinType.LEFT, JoinType.RIGHT) and not join.coalesce_keys:
        return None
    known = build.columns.get(keys[0])
    if known is None or not isinstance(known.minimum, int) or not isinstance(known.maximum, int):
        return None
    cells = known.maximum - known.minimum + 1
    distinct = build.distinct(keys[0]) or 0.0
    combinations = [build.distinct(name) for name in build.columns if name != keys[0]]
    if (
        None in combinations
        or math.prod(count for count in combinations if count is not None) > COMBINATIONS_MAX
        or (distinct < UNIQUE_SHARE * build.rows and join.how not in _ONE_IS_ENOUGH)
        or cells > CELLS_PER_ROW * distinct
    ):
        return None
    return float(cells)
