"""group_by and agg; what group_by returns is in ``grouped_by.py``.

Held by: tests/integration/test_shapes.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from engine.api.expression import Expr
from engine.api.relational_calls import RelationalCalls

if TYPE_CHECKING:
    from engine.api.grouped_by import GroupedBy


class GroupCalls(RelationalCalls):
    """Base of DataSet with its groups."""

    def group_by(self, *keys: Any, **named: Any) -> GroupedBy[Self]:
        """Return the groups of rows with equal keys (names or expressions); without keys, one group.

        >>> rows({"x": [1, 2, 3]}).group_by(odd=col("x") % 2).agg(n=count()).sort("odd").collect()
        [Row(odd=0, n=1), Row(odd=1, n=2)]
        """
        from engine.api.aggregates import argument_expression
        from engine.api.grouped_by import GroupedBy

        named_keys = [Expr(argument_expression(key, "group_by"), name) for name, key in named.items()]
        return GroupedBy(self._node, (*keys, *named_keys), self._with)

    def agg(self, *aggregates: Any, **named: Any) -> Self:
        """Return aggregates of all rows, as one row: ``agg(total=sum_("x"))`` is ``group_by().agg(total=...)``."""
        return self.group_by().agg(*aggregates, **named)
