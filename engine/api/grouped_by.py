"""GroupedBy: what group_by returns.

    agg reduce                      grouped.py
    rollup cube grouping_sets       grouping_sets.py
    head                            the first rows of each group, a filter on row_number()

Held by: tests/integration/test_shapes.py
"""

from __future__ import annotations

from typing import Any, TypeVar

from engine.api.calls import Calls, row_count
from engine.api.grouped import GroupedDataSet
from engine.api.grouping_sets import GroupingSets, cube_sets, named_sets, rollup_sets
from engine.api.windows import order_keys, over_keys, row_number
from engine.graph.expression import ROW_PLACE, OrderedBy

D = TypeVar("D", bound=Calls)


class GroupedBy(GroupedDataSet[D]):
    """Groups of rows with equal keys; nulls are one group."""

    def rollup(self, grouping_id: str | None = None) -> GroupingSets[D]:
        """Return the groups by all keys, by all but the last, and so on to one of all rows: subtotals and a total.

        A key is null in rows of groups that do not have it. ``grouping_id``: a column of that name has a bit for each
        key, the first the highest, 1 where the row's group does not have it.

        >>> sales = rows({"shop": ["a", "a", "b"], "sold": [1, 2, 3]})
        >>> sales.group_by("shop").rollup().agg(sold=sum_("sold")).sort("shop", nulls_last=True).collect()
        [Row(shop='a', sold=3), Row(shop='b', sold=3), Row(shop=None, sold=6)]
        """
        return GroupingSets(self._make(self._said_source), self._said_keys, rollup_sets(self._keys), grouping_id)

    def cube(self, grouping_id: str | None = None) -> GroupingSets[D]:
        """Return the groups by each choice of keys, none included; nulls and ``grouping_id`` as of ``rollup``.

        >>> sales = rows({"shop": ["a", "b"], "day": [1, 1], "sold": [2, 3]})
        >>> sales.group_by("shop", "day").cube().agg(sold=sum_("sold")).count()
        6
        """
        return GroupingSets(self._make(self._said_source), self._said_keys, cube_sets(self._keys), grouping_id)

    def grouping_sets(self, *sets: Any, grouping_id: str | None = None) -> GroupingSets[D]:
        """Return the groups by several sets of keys, each a list of names; nulls and ``grouping_id`` as of ``rollup``.

        >>> sales = rows({"shop": ["a", "b"], "day": [1, 1], "sold": [2, 3]})
        >>> sales.group_by("shop", "day").grouping_sets(["shop"], []).agg(sold=sum_("sold")).count()
        3
        """
        return GroupingSets(self._make(self._said_source), self._said_keys, named_sets(self._keys, sets), grouping_id)

    def head(
        self, count: int, by: Any = None, descending: bool | list[bool] = False, nulls_last: bool | list[bool] = False
    ) -> D:
        """Return the first rows of each group in the order of ``by``, names or expressions; without it, any rows.

        Rows that are equal in ``by`` are in the order of the data set: that of its files, or of a sort.

        >>> rows({"k": [1, 1, 2], "x": [3, 4, 5]}).group_by("k").head(1, "x", descending=True).sort("k").collect()
        [Row(k=1, x=4), Row(k=2, x=5)]
        """
        kept = row_count(count, "head")
        data: Any = self._make(self._source)
        found: D
        if not self._keys:
            found = data.limit(kept) if by is None else data.sort(by, descending, nulls_last).limit(kept)
            return found
        order = order_keys(by, descending, nulls_last)
        if order:
            order = (*order, OrderedBy(ROW_PLACE))
        found = data.filter(row_number().over(list(self._keys), *over_keys(order)) <= kept)
        return found
