"""IN and NOT IN of a query that may refer to the outer row, as joins.

    v IN (SELECT a FROM u WHERE u.b = t.b), of each row outside
    true      some row meets the conditions, and its a is v                     semi join by v = a and b = b
    unknown   else, and some row meets them whose a is null, or v is null       semi joins by b = b of what is left
    false     else                                                              anti joins by b = b

Rows with a null are few as a rule: those with a null outside go by themselves, and so do those inside.

Held by: tests/sql/test_marked_membership.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.api.expressions import lit
from engine.sql.column_names import ColumnNames, Relation
from engine.sql.join_conditions import JoinCondition, JoinKey
from engine.sql.joins import joined
from engine.sql.memberships import Membership


def members(names: ColumnNames, left: Relation, right: Relation, membership: Membership, what: str) -> Relation:
    """Return the rows of the left that are members (semi), are none (anti), or all with a mark (mark)."""
    key, others = membership
    both = JoinCondition((key, *others.keys), others.rest)
    if what == "semi":
        return Relation(joined(left.data, right.data, "semi", both), left.columns)
    values, value_is_null = right.data.filter(key.right.is_null()), key.left.is_null()
    with_null = JoinCondition((JoinKey(value_is_null, lit(True), null_safe=False), *others.keys), others.rest)
    without = joined(left.data, right.data, "anti", both)
    known = joined(joined(without, values, "anti", others), right.data, "anti", with_null)
    if what == "anti":
        return Relation(known, left.columns)
    mark = names.unique("mark")
    seen = list(dict.fromkeys(left.columns))
    among_nulls = joined(without.filter(~value_is_null), values, "semi", others)
    null_outside = joined(without, right.data, "semi", with_null)
    parts = [
        part.select([*seen, lit(value, pa.bool_()).alias(mark)])
        for part, value in (
            (joined(left.data, right.data, "semi", both), True),
            (known, False),
            (among_nulls, None),
            (null_outside, None),
        )
    ]
    return Relation(parts[0].union(*parts[1:]), (*left.columns, mark))
