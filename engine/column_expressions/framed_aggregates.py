"""Aggregates of all values of a frame: ``median("x").over("k", order_by="t", rows=(-6, 0))``, lists and texts.

    framed(aggregated, window) -> expression      the same of the frames of a window

    median quantile                  the values of a frame, kept in their order
    collect_list                     the values in the order of the window
    collect_set, distinct=True       the different ones of the list, sorted
    string_agg                       the list, joined

Others look at whole partitions alone, as groups (``lowering.partition_aggregates``).

Held by: tests/integration/test_framed_aggregates.py
"""

from __future__ import annotations

from msgspec.structs import replace

from engine.errors import NotYetSupportedError
from engine.expressions.text import expression_text
from engine.graph.expression import Aggregated, Call, Case, Expression, Over


def framed(one: Aggregated, window: Over) -> Expression:
    """Return an aggregate over the frames of a window. Raises: NotYetSupportedError where it has none."""
    value, keeps = one.arguments[0], one.where
    if one.function == "quantile":
        share = one.options["q"]
        assert isinstance(share, float), "a share"
        kept = value if keeps is None else Case(((keeps, value),))
        return replace(window, function="quantile", argument=kept, factor=share, distinct=one.distinct)
    if one.function == "list":
        found = replace(window, function="list", argument=value, default=keeps)
        if one.distinct:
            flags: dict[str, bool | int | float | str | None] = {
                "descending": one.order_by[0].descending,
                "nulls_last": one.order_by[0].nulls_last,
            }
            return Call("list_sort", (Call("list_distinct", (found,)),), flags)
        if one.order_by in ((), window.order_by):
            return found
        raise NotYetSupportedError(
            f"{expression_text(one)} over frames with another order than theirs; leave out order_by= of the aggregate"
        )
    raise NotYetSupportedError(
        f"{expression_text(one)} over frames (of whole partitions alone: leave out order_by=, rows= and range=, or"
        " compute it of collect_list(...).over(...))"
    )
