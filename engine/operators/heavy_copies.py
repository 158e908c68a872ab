"""Heavy copies: rows of a join's input that are copies in this subtask, since another one is the home of their keys.

Heavy keys of a repartitioned join are spread on one side and replicated on the other. A replicated row is no copy at
its key's home, the channel of its hash: there it comes out when it has no match. Only rows that come out for their own
sake matter, so at most one side has copies; the planner sees to it (``engine/optimizer/heavy_keys.py``).

Held by: tests/exchange/test_heavy_keys.py
Held by: tests/integration/test_skew.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.exchange.heavy_hashes import heavy_hashes
from engine.exchange.key_selector import HashSelector
from engine.graph.operator_descriptor import HashJoinOperator
from engine.graph.said_operators import JoinType
from engine.join.replicated_keys import ReplicatedKeys

if TYPE_CHECKING:
    import pyarrow as pa

#: sides (0 left, 1 right) whose rows come out for their own sake
_OWN_ROWS = {
    JoinType.LEFT: (0,),
    JoinType.SEMI: (0,),
    JoinType.ANTI: (0,),
    JoinType.RIGHT: (1,),
    JoinType.FULL: (0, 1),
}


def copied_keys(
    operator: HashJoinOperator, left: pa.Schema, subtask_index: int, parallelism: int
) -> ReplicatedKeys | None:
    """Return the keys whose rows are copies in a subtask, None when no side has any that matter.

    Args:
        operator: the join.
        left: schema of its left input.
        subtask_index: of the subtask.
        parallelism: of the join, as many as both inputs have channels.
    """
    if operator.heavy is None:
        return None
    hashes = heavy_hashes(left, operator.left_keys, operator.heavy)
    selector = HashSelector(parallelism, left, operator.left_keys)
    # what is spread on the left is replicated on the right
    for side, replicated in enumerate((hashes.replicated, hashes.spread)):
        foreign = frozenset(one for one in replicated if selector.home_of(one) != subtask_index)
        if foreign and side in _OWN_ROWS.get(operator.how, ()):
            return ReplicatedKeys(foreign, is_build=(side == 0) == operator.build_left)
    return None
