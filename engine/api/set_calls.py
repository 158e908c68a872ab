"""INTERSECT and EXCEPT, as one aggregate over the rows of both sides.

    left, 1, null ──┐
                    ├─► union ─► group by all columns: max of both marks ─► filter on which side has the row
    right, null, 1 ─┘

As keys of groups null equals null and NaN is one value. With ``all`` the equal rows of each side are numbered first, so
that the third one of the left matches the third one of the right.

Rows of other types than the left's go as a semi or anti join, which compares keys of two types exactly.

Held by: tests/integration/test_row_calls.py
Held by: tests/integration/test_keys_of_two_types.py
"""

from __future__ import annotations

from typing import Self

import pyarrow as pa

from engine.api.group_calls import GroupCalls
from engine.api.other_options import with_other_options
from engine.errors import SchemaError
from engine.lowering.projections import free_name
from engine.records.key_types import is_key_type, key_remedy


@with_other_options
class SetCalls(GroupCalls):
    """Base of DataSet with the operations of sets that ``union`` is one of."""

    def intersect(self, other: Self, all: bool = False) -> Self:  # noqa: A002
        """Return the rows that are in both, each different row once; ``all``: as often as in the one that has fewer.

        Columns are matched by name, and have the types of these rows; null equals null.

        >>> rows({"x": [1, 1, 2]}).intersect(rows({"x": [1, 1, 3]}), all=True).to_arrow().to_pylist()
        [{'x': 1}, {'x': 1}]
        """
        return self._matched(other, "intersect", in_other=True, counts=all)

    def except_(self, other: Self, all: bool = False) -> Self:  # noqa: A002
        """Return the rows that are not in the other, each different row once; ``all``: as often as it has them more.

        Columns are matched by name, and have the types of these rows; null equals null.

        >>> rows({"x": [1, 2, 2, None]}).except_(rows({"x": [1, None]})).to_arrow().to_pylist()
        [{'x': 2}]
        """
        return self._matched(other, "except_", in_other=False, counts=all)

    def _matched(self, right: Self, what: str, *, in_other: bool, counts: bool) -> Self:
        """Return the rows that the right has, or has not; ``counts``: copies are counted."""
        from engine.api.aggregates import max_
        from engine.api.expressions import col, lit
        from engine.api.windows import row_number
        from engine.graph.plan import JoinType
        from engine.lowering.aggregate_nodes import aggregate_node
        from engine.lowering.join_keys import keys_on
        from engine.lowering.joins import join_node, union_node

        names = self.schema.names
        # says what does not fit, in the words of this call
        aligned = union_node([self._node, self._partner(right, what)], what).schema
        for field in aligned:
            if not is_key_type(field.type):
                raise SchemaError(
                    f"{what}: column {field.name!r} is {field.type}, which cannot be compared; drop it, or "
                    + key_remedy(field.type)
                )
        own, others, number = (free_name(name, self.schema) for name in ("__left", "__right", "__number"))
        absent = lit(None, pa.int8())
        sides = [
            side.with_columns(**{number: row_number().over(names)}) if counts else side
            for side in (self, right.select(*names))
        ]
        keys = [*names, number] if counts else names
        if [each.type for each in sides[1].schema] != [each.type for each in sides[0].schema]:
            rows, others_rows = (side._node for side in sides)
            rows = rows if counts else aggregate_node(rows, tuple(names), ())
            kind = JoinType.SEMI if in_other else JoinType.ANTI
            found = join_node(rows, others_rows, kind, keys_on(keys, null_safe=True))
            return self._with(found).select(*names)
        present = lit(1, pa.int8())
        marked = [
            side.with_columns(**{own: mark, others: other})
            for side, mark, other in zip(sides, (present, absent), (absent, present), strict=True)
        ]
        groups = marked[0].union(marked[1]).group_by(keys).agg(**{own: max_(own), others: max_(others)})
        there = col(others).is_not_null() if in_other else col(others).is_null()
        return groups.filter(col(own).is_not_null() & there).select(*names)
