"""ReplicatedKeys: the heavy keys whose rows of one side every subtask of a join has.

    heavy side:   rows of a heavy key are spread over all subtasks, each row in one
    other side:   rows of that key are copied to all subtasks: ReplicatedKeys(hashes, is_build)

Copies match, so each subtask joins its share of the heavy side with all of the other. But whether a copy found a match
anywhere is not known to one subtask: a join never returns a copy for its own sake (unmatched, or once in a semi or anti
join). The exchange that splits heavy keys sends rows that must come out to one home besides.

Held by: tests/join/test_join_condition.py
"""

from __future__ import annotations

import msgspec


class ReplicatedKeys(msgspec.Struct, frozen=True):
    """The keys whose rows are copies in a join's input."""

    #: 64-bit hashes of the keys, unsigned, by which the exchange sends rows (``engine/records/hashing.pxd``)
    hashes: frozenset[int]
    #: True if the copies are in the build input (else in the probe input)
    is_build: bool
