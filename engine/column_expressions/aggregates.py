"""Aggregates: what ``group_by(...).agg(name=sum_(col("x")))`` takes, alone and within expressions.

    sum_("x", filter=col("ok"))       values of rows for which a condition is true
    sum_("x", distinct=True)          different values, each once
    sum_("x") / count()               an expression of aggregates; keys of the groups may stand in it, too
    sum_("x").over("k")               the same of rows around each row: see ``row_number().over``

Nulls do not count, except in ``count()``, ``first`` and ``last``. Without a value that counts, counts are 0 and all
others null. Aggregates that look at the order of values are in ``value_aggregates``.

Held by: tests/column_expressions/test_aggregates.py
Held by: tests/integration/test_aggregate_functions.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.column_expressions.expression import Expr, to_expression
from engine.column_expressions.python_habits import with_options_of_windows
from engine.errors import NotYetSupportedError, SchemaError
from engine.expressions.literals import make_literal
from engine.expressions.text import expression_text
from engine.graph.expression import (
    EXTREMES_OF_CONDITIONS,
    OF_GROUPS,
    Aggregated,
    Call,
    Case,
    ColumnRef,
    Expression,
    OrderedBy,
    Over,
    has_aggregate,
    replaced,
)

if TYPE_CHECKING:
    from engine.choices import FrameExclude

#: aggregates whose result does not change when equal values count once
_SAME_OF_DISTINCT = frozenset({"min", "max", "bit_and", "bit_or"})


class Aggregate(Expr):
    """An aggregate function of expressions, or an expression of such functions."""

    __slots__ = ()

    def call(self, function: str, *others: Any, **options: bool | int | float | str | None) -> Aggregate:
        """Return a function of this and others, which is an expression of aggregates."""
        found = super().call(function, *others, **options)
        return Aggregate(found.expression if found.chain is None else found.chain)

    def alias(self, name: str) -> Aggregate:
        """Return this aggregate under another column name."""
        return Aggregate(self.expression, super().alias(name)._name)

    @with_options_of_windows
    def over(
        self,
        partition_by: Any = None,
        order_by: Any = None,
        descending: bool | list[bool] = False,
        nulls_last: bool | list[bool] = False,
        rows: tuple[int | None, int | None] | None = None,
        range: tuple[Any, Any] | None = None,  # noqa: A002
        groups: tuple[int | None, int | None] | None = None,
        exclude: FrameExclude | None = None,
    ) -> Expr:
        """Return the aggregate over rows around each row, as an expression: see ``row_number().over``.

        Without a frame it is over the whole partition, or with an order over all rows up to this one and its equals.
        """
        from engine.column_expressions.windows import Bounds, over

        bounds = Bounds(rows, range, groups, exclude)

        def window(part: Expression) -> Expression | None:
            if not isinstance(part, Aggregated):
                return None
            base = _window_base(part)
            return over(base, partition_by, order_by, descending, nulls_last, bounds).expression

        return Expr(replaced(self.expression, window), self._name)

    def __repr__(self) -> str:
        return f"<Aggregate {expression_text(self.expression)}>"

    def __bool__(self) -> Any:
        raise SchemaError(f"{self!r} is an aggregate; use it in group_by(...).agg(name=...)")


#: aggregates over any frame; others need whole partitions
_OF_FRAMES: Final = frozenset(
    {"count", "count_all", "sum", "avg", "min", "max", "stddev", "variance", "first", "last"}
    | {"min_by", "max_by", "covar_samp", "covar_pop", "corr"}
    | set(EXTREMES_OF_CONDITIONS)
)


def _window_base(one: Aggregated) -> Over:
    """Return an aggregate as a window function: what its filter leaves out is null there."""
    is_of_several = one.distinct and len(one.arguments) > 1
    if one.function not in _OF_FRAMES or one.options or one.order_by or is_of_several:
        return Over(OF_GROUPS, one)
    argument = one.arguments[0] if one.arguments else None
    second = one.arguments[1] if len(one.arguments) > 1 else None
    function = EXTREMES_OF_CONDITIONS.get(one.function, one.function)
    distinct = one.distinct and function not in _SAME_OF_DISTINCT
    if one.where is None:
        return Over(function, argument, default=second, distinct=distinct)
    if one.function in ("first", "last") and not _has_values_alone(one.where, one.arguments[0]):
        raise NotYetSupportedError(f"{expression_text(one)} over a window")
    kept = Case(((one.where, make_literal(1) if argument is None else argument),))
    ignores_nulls = one.function in ("first", "last")
    function = f"{function}_value" if ignores_nulls else function
    function = "count" if argument is None else function
    return Over(function, kept, default=second, distinct=distinct, ignore_nulls=ignores_nulls)


def _has_values_alone(condition: Expression, value: Expression) -> bool:
    """Whether a condition is true only where a value is not null."""
    if not isinstance(condition, Call):
        return False
    if condition.function == "and":
        return any(_has_values_alone(each, value) for each in condition.arguments)
    return condition == Call("is_not_null", (value,))


def argument_expression(value: Any, what: str) -> Expression:
    """Return the argument of an aggregate: a column's name, an expression, or a constant."""
    expression = ColumnRef(value) if isinstance(value, str) else to_expression(value)
    if has_aggregate(expression):
        raise SchemaError(f"{what}({expression_text(expression)}): an aggregate of an aggregate; call agg twice")
    return expression


def aggregated(
    function: str,
    *values: Any,
    filter: Any = None,  # noqa: A002
    distinct: bool = False,
    order_by: tuple[OrderedBy, ...] = (),
    **options: bool | int | float | str | None,
) -> Aggregate:
    """Return an aggregate of values; ``filter`` is a condition (an expression, or the name of a bool column)."""
    what = "count" if function == "count_all" else function
    arguments = tuple(argument_expression(value, what) for value in values)
    where = None if filter is None else argument_expression(filter, f"{what}: filter=")
    if not isinstance(distinct, bool):
        raise SchemaError(f"{what}: distinct={distinct!r}: True or False")
    is_distinct = distinct and function not in _SAME_OF_DISTINCT
    return Aggregate(Aggregated(function, arguments, where, is_distinct, order_by, options))


_ROWS = object()


def count(argument: Any = _ROWS, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the number of rows, or of values of an expression (or column name) that are not null; int64.

    ``count("*")`` counts rows, too.

    >>> groups(x=["a", "b", None, "a"]).agg(rows=count(), values=count("x"), kinds=count("x", distinct=True))
    [Row(rows=4, values=3, kinds=2)]
    """
    if argument is _ROWS or (isinstance(argument, str) and argument == "*"):
        if distinct:
            raise SchemaError("count(distinct=True): different values of what? count('column', distinct=True)")
        return aggregated("count_all", filter=filter)
    return aggregated("count", argument, filter=filter, distinct=distinct)


def count_if(condition: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Return the number of rows for which a condition is true; int64.

    >>> groups(x=[1, 5, None]).agg(large=count_if(col("x") > 3), one=count_if(col("x") < 3, filter=col("x") != 2))
    [Row(large=1, one=1)]
    """
    if filter is None:
        return aggregated("count_all", filter=condition)
    both = argument_expression(condition, "count_if"), argument_expression(filter, "count_if: filter=")
    return aggregated("count_all", filter=Expr(Call("and", both)))


def count_distinct(argument: Any, *others: Any, filter: Any = None) -> Aggregate:  # noqa: A002
    """Return the number of different values that are not null; int64. NaN is one value, -0.0 is 0.0.

    Of several arguments: how many combinations there are in rows without a null in any of them.

    >>> groups(x=["a", "b", None, "a"], y=[1, 1, 1, 2]).agg(kinds=count_distinct("x"), pairs=count_distinct("x", "y"))
    [Row(kinds=2, pairs=3)]
    """
    return aggregated("count", argument, *others, filter=filter, distinct=True)


def sum_(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the sum: int64 of integers (overflow is an error), float64 of floats, decimals keep their scale.

    >>> groups(x=[1, 2, 2, None]).agg(all=sum_("x"), different=sum_("x", distinct=True), share=sum_("x") / count())
    [Row(all=5, different=3, share=1.25)]
    """
    return aggregated("sum", argument, filter=filter, distinct=distinct)


def min_(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the least value.

    >>> groups(x=[3, 1, None]).agg(least=min_("x"), above_one=min_("x", filter=col("x") > 1))
    [Row(least=1, above_one=3)]
    """
    return aggregated("min", argument, filter=filter, distinct=distinct)


def max_(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the greatest value; NaN is the largest number.

    >>> groups(x=["a", "c", "b"]).agg(greatest=max_("x"))
    [Row(greatest='c')]
    """
    return aggregated("max", argument, filter=filter, distinct=distinct)


def avg(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the mean as float64, also for decimals: the one nearest to the exact mean, rounded once.

    >>> groups(x=[1, 2, None]).agg(mean=avg("x"))
    [Row(mean=1.5)]
    """
    return aggregated("avg", argument, filter=filter, distinct=distinct)


def first(argument: Any, *, filter: Any = None, ignore_nulls: bool = False) -> Aggregate:  # noqa: A002
    """Return the value of the first row, null if that is null: after a sort in its order, else of any row.

    One subtask takes its rows as they come, so equal inputs give equal results. With several subtasks and rows without
    an order, it is the first row of the subtask whose rows arrive first. ignore_nulls: of the rows that have a value.

    >>> groups(x=[None, 5, 9]).agg(any=first("x"), value=first("x", ignore_nulls=True))
    [Row(any=None, value=5)]
    """
    return _of_row("first", argument, filter, ignore_nulls)


def last(argument: Any, *, filter: Any = None, ignore_nulls: bool = False) -> Aggregate:  # noqa: A002
    """Return the value of the last row, null if that is null; for the order, see ``first``.

    >>> groups(x=[1, 5, None]).agg(any=last("x"), value=last("x", ignore_nulls=True))
    [Row(any=None, value=5)]
    """
    return _of_row("last", argument, filter, ignore_nulls)


def _of_row(function: str, argument: Any, condition: Any, ignore_nulls: bool) -> Aggregate:
    """Return the value of the first or last row; of those that have one, where nulls are ignored."""
    if not isinstance(ignore_nulls, bool):
        raise SchemaError(f"{function}(ignore_nulls={ignore_nulls!r}): True or False")
    if not ignore_nulls:
        return aggregated(function, argument, filter=condition)
    has_value: Expression = Call("is_not_null", (argument_expression(argument, function),))
    if condition is not None:
        has_value = Call("and", (argument_expression(condition, f"{function}: filter="), has_value))
    return aggregated(function, argument, filter=Expr(has_value))


def any_(condition: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Whether a condition is true for any row; null where it is null for all.

    >>> groups(x=[1, 5, None]).agg(large=any_(col("x") > 3))
    [Row(large=True)]
    """
    return aggregated("any", condition, filter=filter)


def all_(condition: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Whether a condition is true for all rows for which it is not null; null where it is null for all.

    >>> groups(x=[1, 5, None]).agg(large=all_(col("x") > 3))
    [Row(large=False)]
    """
    return aggregated("all", condition, filter=filter)


def stddev(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the standard deviation of a sample (n - 1): float64, null for fewer than two values.

    >>> groups(x=[1.0, 3.0, 5.0]).agg(deviation=stddev("x"))
    [Row(deviation=2.0)]
    """
    return aggregated("stddev", argument, filter=filter, distinct=distinct)


def variance(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the variance of a sample (n - 1): float64, null for fewer than two values.

    >>> groups(x=[1.0, 3.0, 5.0]).agg(variance=variance("x"))
    [Row(variance=4.0)]
    """
    return aggregated("variance", argument, filter=filter, distinct=distinct)


def variance_pop(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the variance of a population (n): float64, null without values.

    >>> groups(x=[1.0, 3.0]).agg(variance=variance_pop("x"))
    [Row(variance=1.0)]
    """
    sample = variance(argument, filter=filter, distinct=distinct).expression
    number = count(argument, filter=filter, distinct=distinct).expression
    one, zero = make_literal(1), make_literal(0.0)
    share = Call("divide", (Call("subtract", (number, one)), number))
    branches = (
        (Call("greater", (number, one)), Call("multiply", (sample, share))),
        (Call("equal", (number, one)), zero),
    )
    return Aggregate(Case(branches))


def stddev_pop(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the standard deviation of a population (n): float64, null without values.

    >>> groups(x=[1.0, 3.0]).agg(deviation=stddev_pop("x"))
    [Row(deviation=1.0)]
    """
    return Aggregate(Call("sqrt", (variance_pop(argument, filter=filter, distinct=distinct).expression,)))


def covar(left: Any, right: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Return the covariance of a sample (n - 1) of pairs without null: float64, null for fewer than two pairs.

    >>> groups(x=[1, 2, 3], y=[1.0, 3.0, 5.0]).agg(together=covar("x", "y"))
    [Row(together=2.0)]
    """
    return aggregated("covar_samp", left, right, filter=filter)


def covar_pop(left: Any, right: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Return the covariance of a population (n) of pairs without null: float64, null without pairs.

    >>> groups(x=[1, 3], y=[1.0, 5.0]).agg(together=covar_pop("x", "y"))
    [Row(together=2.0)]
    """
    return aggregated("covar_pop", left, right, filter=filter)


def corr(left: Any, right: Any, *, filter: Any = None) -> Aggregate:  # noqa: A002
    """Return the correlation of pairs without null, from -1 to 1: float64, null without pairs.

    It is NaN where one side is the same in all pairs, as in DuckDB.

    >>> groups(x=[1, 2, 3], y=[9.0, 8.0, 7.0]).agg(together=corr("x", "y").round(9))
    [Row(together=-1.0)]
    """
    return aggregated("corr", left, right, filter=filter)


def skewness(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the skewness of a sample: float64, null for fewer than three values, or where all are equal.

    As DuckDB and pandas; that of Spark and Polars is the one of a population.

    >>> groups(x=[1.0, 2.0, 9.0]).agg(skew=skewness("x").round(3))
    [Row(skew=1.63)]
    """
    return aggregated("skewness", argument, filter=filter, distinct=distinct)


def kurtosis(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the excess kurtosis of a sample: float64, null for fewer than four values, or where all are equal.

    It is 0 of a normal distribution. As DuckDB and pandas; that of Spark and Polars is the one of a population.

    >>> groups(x=[1.0, 2.0, 3.0, 10.0]).agg(tails=kurtosis("x").round(3))
    [Row(tails=3.228)]
    """
    return aggregated("kurtosis", argument, filter=filter, distinct=distinct)


def product(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the product of numbers: float64.

    >>> groups(x=[2, 3, 4, None]).agg(product=product("x"))
    [Row(product=24.0)]
    """
    return aggregated("product", argument, filter=filter, distinct=distinct)


def bit_and(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the bits that all integers have, in their type.

    >>> groups(x=[7, 5, None]).agg(bits=bit_and("x"))
    [Row(bits=5)]
    """
    return aggregated("bit_and", argument, filter=filter, distinct=distinct)


def bit_or(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the bits that any of the integers has, in their type.

    >>> groups(x=[4, 1, None]).agg(bits=bit_or("x"))
    [Row(bits=5)]
    """
    return aggregated("bit_or", argument, filter=filter, distinct=distinct)


def bit_xor(argument: Any, *, filter: Any = None, distinct: bool = False) -> Aggregate:  # noqa: A002
    """Return the bits that an odd number of the integers has, in their type.

    >>> groups(x=[7, 5, None]).agg(bits=bit_xor("x"))
    [Row(bits=2)]
    """
    return aggregated("bit_xor", argument, filter=filter, distinct=distinct)
