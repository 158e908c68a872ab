"""Aggregates over windows that are made of others: of different values, and of two arguments.

    with_plain_windows(node, expressions, what) -> (node, expressions)      the same results, from functions that
                                                                            ``window_nodes`` has operators for

    function                            is made of
    count, sum ... of different values  the same of values that are the first of their kind: row_number by (partition,
                                        value) in the order
    min_by, max_by                      the extreme key so far, and the least value that stands beside it: by
                                        (partition, extreme)
    covar, covar_pop, corr              sums of pairs and of their products, each less the mean of its partition, which
                                        keeps what is taken from each other small

Frames of the first two begin with the partition: a value that leaves a frame would have to be looked for in the rest of
it. In frames of rows, rows that are equal in the order are numbered first, for all parts to see them in one order.

Held by: tests/integration/test_window_rewrites.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec.structs import replace

from engine.api.expression import Expr
from engine.api.expressions import lit, when
from engine.api.row_functions import greatest, least
from engine.errors import NotYetSupportedError, SchemaError
from engine.expressions.infer import infer_type
from engine.expressions.schema_bridge import type_to_ipc
from engine.expressions.text import expression_text
from engine.graph.expression import Cast, ColumnRef, Expression, NamedExpression, OrderedBy, Over, replaced
from engine.records.key_types import is_key_type, key_remedy

if TYPE_CHECKING:
    from engine.api.logical_node import LogicalNode

#: function that adds columns to a node; they may contain window functions
AddColumns = Callable[["LogicalNode", Sequence[NamedExpression], str], "LogicalNode"]

_PAIRS: Final = frozenset({"covar_samp", "covar_pop", "corr"})
_EXTREMES: Final = {"min_by": "min", "max_by": "max"}
#: functions of two arguments
OF_TWO: Final = _PAIRS | _EXTREMES.keys()


def with_plain_windows(
    source: LogicalNode, expressions: Sequence[Expression], what: str, project: AddColumns
) -> tuple[LogicalNode, list[Expression]]:
    """Return a node with columns of parts, and the expressions over it.

    Raises: SchemaError where values have no order or are no numbers; NotYetSupportedError for frames that slide.
    """
    rewriting = _Rewriting(source, what, project)
    made = [replaced(expression, rewriting.plain) for expression in expressions]
    return rewriting.node, made


class _Rewriting:
    def __init__(self, source: LogicalNode, what: str, project: AddColumns) -> None:
        self.node = source
        self._what = what
        self._project = project
        self._made: list[tuple[Expression, ColumnRef]] = []

    def plain(self, part: Expression) -> Expression | None:
        """Return the replacement of a window function; None: it stays."""
        if not isinstance(part, Over):
            return None
        if part.distinct:
            return self._of_different(part)
        if part.function in _EXTREMES:
            return self._extreme_by(part)
        return self._of_pairs(part) if part.function in _PAIRS else None

    def _column(self, value: Expr) -> Expr:
        """Return a column below that has the values of an expression."""
        known = next((column for made, column in self._made if made == value.expression), None)
        if known is None:
            number = len(self._made)
            while f"__part{number}" in self.node.schema.names:
                number += 1
            known = ColumnRef(f"__part{number}")
            kept = [NamedExpression(name, ColumnRef(name)) for name in self.node.schema.names]
            self.node = self._project(self.node, [*kept, NamedExpression(known.name, value.expression)], self._what)
            self._made.append((value.expression, known))
        return Expr(known)

    def _running(self, over: Over) -> Over:
        """Return the window with rows numbered where their order matters; a frame that slides is refused."""
        frame = over.frame
        if frame is None or frame.is_whole:
            return over
        if frame.start is not None:
            raise NotYetSupportedError(
                f"{expression_text(over)}: a frame that begins behind the first row; begin it there, rows=(None, 0), "
                "or leave it out"
            )
        if frame.kind != "rows":
            return over
        number = self._column(Expr(Over("row_number", None, over.partition_by, over.order_by)))
        return replace(over, order_by=(OrderedBy(number.expression),))

    def _check_order(self, over: Over, value: Expression) -> None:
        data_type = infer_type(value, self.node.schema)
        if not is_key_type(data_type):
            raise SchemaError(f"{expression_text(over)}: values of {data_type} have no order: {key_remedy(data_type)}")

    def _of_different(self, over: Over) -> Expression:
        assert over.argument is not None, "it has values"
        self._check_order(over, over.argument)
        value = self._column(Expr(over.argument))
        over = self._running(over)
        # equal values of a partition in its order: the first of them stands for all that come later
        keys = (*over.partition_by, value.expression)
        ahead = over.order_by if over.frame is None or not over.frame.is_whole else ()
        number = self._column(Expr(Over("row_number", None, keys, ahead)))
        return replace(over, argument=when(number == 1).then(value).expression, distinct=False)

    def _extreme_by(self, over: Over) -> Expression:
        argument, second = over.argument, over.default
        assert argument is not None and second is not None, "it has two arguments"
        self._check_order(over, argument)
        self._check_order(over, second)
        over = self._running(over)
        value, key = Expr(argument), Expr(second)
        counted = self._column(when(value.is_not_null()).then(key))
        most = replace(over, function=_EXTREMES[over.function], argument=counted.expression, default=None)
        extreme = self._column(Expr(most))
        # NaN is a key as others are
        is_extreme = counted.eq_null_safe(extreme) & counted.is_not_null()
        return replace(
            over,
            function="min",
            argument=when(is_extreme).then(value).expression,
            default=None,
            partition_by=(*over.partition_by, extreme.expression),
        )

    def _of_pairs(self, over: Over) -> Expression:
        assert over.argument is not None and over.default is not None, "it has two arguments"
        sides = [self._number(over, side) for side in (over.argument, over.default)]
        both = sides[0].is_not_null() & sides[1].is_not_null()
        shifted = [self._less_mean(over, self._column(when(both).then(side))) for side in sides]

        def seen(function: str, value: Expr) -> Expr:
            return self._column(Expr(replace(over, function=function, argument=value.expression, default=None)))

        count, product = seen("count", shifted[0]), seen("sum", shifted[0] * shifted[1])
        pairs = count.cast(pa.float64())
        together = product - seen("sum", shifted[0]) * seen("sum", shifted[1]) / pairs
        if over.function == "covar_pop":
            return when(count > 0).then(together / pairs).expression
        if over.function == "covar_samp":
            return when(count > 1).then(together / (pairs - 1.0)).expression
        spreads = [seen("stddev", side) for side in shifted]
        found = together / (pairs - 1.0) / (spreads[0] * spreads[1])
        # NaN compares greater than all and stays
        bounded = when(found.is_nan()).then(found).otherwise(least(1.0, greatest(-1.0, found)))
        varies = (count > 1) & (spreads[0] != 0.0) & (spreads[1] != 0.0)
        return when(varies).then(bounded).when(count > 0).then(lit(float("nan"))).expression

    def _less_mean(self, over: Over, value: Expr) -> Expr:
        mean = self._column(Expr(Over("avg", value.expression, over.partition_by)))
        # what is infinite somewhere would make all rows so
        return self._column(value - when(mean.is_finite()).then(mean).otherwise(0.0))

    def _number(self, over: Over, side: Expression) -> Expr:
        data_type = infer_type(side, self.node.schema)
        if not (pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type)):
            raise SchemaError(f"{expression_text(over)}: it takes numbers, an argument is {data_type}")
        return Expr(Cast(side, type_to_ipc(pa.float64()), "double", widens=True))
