"""Functions over windows that are made of others: of different values, of two arguments, of values that are there.

    with_plain_windows(node, expressions, what) -> (node, expressions)      the same results, from functions that
                                                                            ``window_nodes`` has operators for

    function                            is made of
    count, sum ... of different values  the same of values that are the first of their kind: row_number by (partition,
                                        value) in the order; counts in frames that slide: of the different values of
                                        a list
    min_by, max_by                      the least pair of a key and its value; of types that make no pair the extreme
                                        key so far, and the least value that stands beside it: by (partition, extreme)
    first_value ... that ignore nulls   the least or greatest pair of a row's number and its value, null where that is
    covar, covar_pop, corr              sums of pairs and of their products, each less the mean of its partition, which
                                        keeps what is taken from each other small

Frames of other functions of different values, and of extremes that make no pair, begin with the partition: a value
that leaves a frame would have to be looked for in the rest of it. In frames of rows, rows that are equal in the order
are numbered first, for all parts to see them in one order.

Held by: tests/integration/test_window_rewrites.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec.structs import replace

from engine.errors import NotYetSupportedError, SchemaError
from engine.expressions.infer import infer_type
from engine.expressions.literals import make_literal
from engine.expressions.ordered_pairs import can_pair, head_of
from engine.expressions.text import expression_text
from engine.graph.expression import ColumnRef, Expression, NamedExpression, OrderedBy, Over, conjunction, replaced
from engine.graph.window import SHIFT_FUNCTIONS, WindowFrame
from engine.lowering.projections import columns_as_they_are
from engine.lowering.terms import call, case, cast, is_there
from engine.lowering.window_exclusions import excluded, of_ranges
from engine.records.key_types import is_key_type, key_remedy

if TYPE_CHECKING:
    from engine.lowering.logical_node import LogicalNode

#: function that adds columns to a node; they may contain window functions
AddColumns = Callable[["LogicalNode", Sequence[NamedExpression], str], "LogicalNode"]

_PAIRS: Final = frozenset({"covar_samp", "covar_pop", "corr"})
_EXTREMES: Final = {"min_by": "min", "max_by": "max"}
#: function of the line between two values
INTERPOLATE: Final = "interpolate"
_NUMBER: Final = pa.int64()
#: functions of two arguments
OF_TWO: Final = _PAIRS | _EXTREMES.keys()


def is_made_of_others(over: Over) -> bool:
    """Return whether a function over a window has no operator of its own."""
    frame = over.frame
    has_frame = frame is not None and (frame.kind == "groups" or (frame.exclude != "" and not frame.part))
    return over.distinct or over.ignore_nulls or over.function in OF_TWO or over.function == INTERPOLATE or has_frame


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
        if not isinstance(part, Over) or not is_made_of_others(part):
            return None
        if part.frame is not None and part.frame.kind == "groups":
            part = of_ranges(part, self._column)
            return self.plain(part) or part
        if part.ignore_nulls:
            found = self._passing_nulls(part)
            return replaced(found, self.plain)
        if part.function == INTERPOLATE:
            return self._interpolated(part)
        if part.frame is not None and part.frame.exclude:
            return excluded(part, self.node.schema)
        if part.distinct:
            return self._of_different(part)
        if part.function in _EXTREMES:
            return self._extreme_by(part)
        return self._of_pairs(part) if part.function in _PAIRS else None

    def _column(self, value: Expression) -> Expression:
        """Return a column below that has the values of an expression."""
        known = next((column for made, column in self._made if made == value), None)
        if known is None:
            number = len(self._made)
            while f"__part{number}" in self.node.schema.names:
                number += 1
            known = ColumnRef(f"__part{number}")
            kept = columns_as_they_are(self.node.schema.names)
            self.node = self._project(self.node, [*kept, NamedExpression(known.name, value)], self._what)
            self._made.append((value, known))
        return known

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
        number = self._column(Over("row_number", None, over.partition_by, over.order_by))
        return replace(over, order_by=(OrderedBy(number),))

    def _passing_nulls(self, over: Over) -> Expression:
        """Return a value of a row that has one, by the number of the row in the order."""
        value = over.argument
        assert value is not None, "it has a value"
        value_type = infer_type(value, self.node.schema)
        if pa.types.is_null(value_type):
            return value
        if not can_pair(_NUMBER, value_type):
            raise NotYetSupportedError(f"{expression_text(over)}: values of {value_type} that ignore nulls")
        number = self._column(Over("row_number", None, over.partition_by, over.order_by))
        over, value = replace(over, ignore_nulls=False), self._column(value)
        is_last = over.function in ("last_value", "last", "lag")
        if over.function in SHIFT_FUNCTIONS:
            if over.count == 0:
                return value
            there = is_there(value)
            if over.count > 1:
                among = (*over.partition_by, self._column(there))
                ahead = replace(
                    over, partition_by=among, order_by=(OrderedBy(number),), count=over.count - 1, default=None
                )
                value = self._column(case((there, replace(ahead, argument=value))))
            frame = WindowFrame("rows", None, -1) if is_last else WindowFrame("rows", 1, None)
            over = replace(over, order_by=(OrderedBy(number),), frame=frame)
        if over.function == "nth_value":
            value = self._nth(over, value, number)
        pair = call("ordered_pair", number, value, inverted=False)
        default = over.default
        made = replace(over, function="max" if is_last else "min", argument=pair, default=None, count=0)
        found = call("paired_value", made, make_literal(None, value_type), head=head_of(_NUMBER))
        return found if default is None else call("coalesce", found, default)

    def _nth(self, over: Over, value: Expression, number: Expression) -> Expression:
        """Return the value that is the n-th of its partition, null in all other rows."""
        if over.frame is not None and over.frame.start is not None:
            raise NotYetSupportedError(
                f"{expression_text(over)} that ignores nulls, in a frame that begins behind the partition's first row"
            )
        so_far = WindowFrame("rows", None, 0)
        place = self._column(Over("count", value, over.partition_by, (OrderedBy(number),), so_far))
        return self._column(case((call("and", call("equal", place, over.count), is_there(value)), value)))

    def _interpolated(self, over: Over) -> Expression:
        """Return the value, or what lies on the line between those before and behind."""
        assert over.argument is not None, "it has a value"
        value = self._column(self._number(over, over.argument))
        number = self._column(Over("row_number", None, over.partition_by, over.order_by))
        known = self._column(case((is_there(value), number)))

        def nearest(function: str, part: Expression, start: int | None, end: int | None) -> Expression:
            frame = WindowFrame("rows", start, end)
            seen = Over(function, part, over.partition_by, (OrderedBy(number),), frame, ignore_nulls=True)
            return self._column(self.plain(seen) or seen)

        before, behind = (nearest("last_value", one, None, 0) for one in (value, known))
        after, beyond = (nearest("first_value", one, 0, None) for one in (value, known))
        gone, span = (cast(call("subtract", one, behind), pa.float64(), widens=True) for one in (number, beyond))
        rise = call("divide", call("multiply", call("subtract", after, before), gone), span)
        return case((is_there(value), value), (is_there(after), call("add", before, rise)))

    def _check_order(self, over: Over, value: Expression) -> None:
        data_type = infer_type(value, self.node.schema)
        if not is_key_type(data_type):
            raise SchemaError(f"{expression_text(over)}: values of {data_type} have no order: {key_remedy(data_type)}")

    def _of_different(self, over: Over) -> Expression:
        assert over.argument is not None, "it has values"
        self._check_order(over, over.argument)
        value = self._column(over.argument)
        frame = over.frame
        if over.function == "count" and frame is not None and frame.start is not None:
            seen = replace(over, function="list", argument=value, default=is_there(value), distinct=False)
            return call("coalesce", call("list_length", call("list_distinct", seen)), 0)
        over = self._running(over)
        # equal values of a partition in its order: the first of them stands for all that come later
        keys = (*over.partition_by, value)
        ahead = over.order_by if over.frame is None or not over.frame.is_whole else ()
        number = self._column(Over("row_number", None, keys, ahead))
        return replace(over, argument=case((call("equal", number, 1), value)), distinct=False)

    def _extreme_by(self, over: Over) -> Expression:
        value, key = over.argument, over.default
        assert value is not None and key is not None, "it has two arguments"
        self._check_order(over, value)
        self._check_order(over, key)
        value_type, key_type = infer_type(value, self.node.schema), infer_type(key, self.node.schema)
        has_greatest = over.function == "max_by"
        if not can_pair(_NUMBER, value_type):
            return self._extreme_so_far(over, value, key)
        if not can_pair(key_type, value_type):
            place = Over("dense_rank", None, over.partition_by, (OrderedBy(key, descending=has_greatest),))
            key, key_type, has_greatest = case((is_there(key), self._column(place))), _NUMBER, False
        pair = self._column(call("ordered_pair", key, value, inverted=has_greatest))
        least = self._column(replace(over, function="min", argument=pair, default=None))
        return call("paired_value", least, make_literal(None, value_type), head=head_of(key_type))

    def _extreme_so_far(self, over: Over, value: Expression, key: Expression) -> Expression:
        """Return the least value beside the extreme key, for types that cannot be paired with a key."""
        frame = over.frame
        if frame is not None and not frame.is_whole and frame.end != 0:
            value_type = infer_type(value, self.node.schema)
            raise NotYetSupportedError(
                f"{expression_text(over)}: values of {value_type} in a frame that does not end with the current row; "
                "end it there, rows=(None, 0), or cast the values to text"
            )
        over = self._running(over)
        counted = self._column(case((is_there(value), key)))
        most = replace(over, function=_EXTREMES[over.function], argument=counted, default=None)
        extreme = self._column(most)
        # NaN is a key as others are
        is_extreme = call("and", call("eq_null_safe", counted, extreme), is_there(counted))
        return replace(
            over,
            function="min",
            argument=case((is_extreme, value)),
            default=None,
            partition_by=(*over.partition_by, extreme),
        )

    def _of_pairs(self, over: Over) -> Expression:
        assert over.argument is not None and over.default is not None, "it has two arguments"
        sides = [self._number(over, side) for side in (over.argument, over.default)]
        both = call("and", is_there(sides[0]), is_there(sides[1]))
        one, other = (self._less_mean(over, self._column(case((both, side)))) for side in sides)

        def seen(function: str, value: Expression) -> Expression:
            return self._column(replace(over, function=function, argument=value, default=None))

        count, product = seen("count", one), seen("sum", call("multiply", one, other))
        pairs = cast(count, pa.float64())
        squares = call("multiply", seen("sum", one), seen("sum", other))
        together = call("subtract", product, call("divide", squares, pairs))
        some = call("greater", count, 0)
        several = call("greater", count, 1)
        if over.function == "covar_pop":
            return case((some, call("divide", together, pairs)))
        less = call("subtract", pairs, 1.0)
        if over.function == "covar_samp":
            return case((several, call("divide", together, less)))
        spreads = [seen("stddev", side) for side in (one, other)]
        found = call("divide", call("divide", together, less), call("multiply", *spreads))
        # NaN compares greater than all and stays
        bounded = case((call("is_nan", found), found), otherwise=call("least", 1.0, call("greatest", -1.0, found)))
        varies = conjunction((several, *(call("not_equal", spread, 0.0) for spread in spreads)))
        return case((varies, bounded), (some, float("nan")))

    def _less_mean(self, over: Over, value: Expression) -> Expression:
        mean = self._column(Over("avg", value, over.partition_by))
        # what is infinite somewhere would make all rows so
        return self._column(call("subtract", value, case((call("is_finite", mean), mean), otherwise=0.0)))

    def _number(self, over: Over, side: Expression) -> Expression:
        data_type = infer_type(side, self.node.schema)
        if not (pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type)):
            raise SchemaError(f"{expression_text(over)}: it takes numbers, an argument is {data_type}")
        return cast(side, pa.float64(), widens=True)
