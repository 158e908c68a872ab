"""A plan as one writes it by hand in PySpark: a call of DataFrame for each step, with Spark's own meaning of all.

    by_hand(session, plan) -> DataFrame

What ``-t spark`` is measured against: the same steps in the same order, without what makes the rows the engine's. It
knows what the questions of TPC-H need.
"""

from functools import reduce
from operator import and_

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from engine.expressions.literals import literal_scalar
from engine.graph.expression import Case, ColumnRef, Literal
from engine.graph.plan import Aggregate, Filter, Join, Limit, Project, Sink, Sort, Source

_HOW = {"semi": "left_semi", "anti": "left_anti"}
_CALLS = {
    "add": lambda left, right: left + right,
    "subtract": lambda left, right: left - right,
    "multiply": lambda left, right: left * right,
    "divide": lambda left, right: left / right,
    "equal": lambda left, right: left == right,
    "not_equal": lambda left, right: left != right,
    "less": lambda left, right: left < right,
    "less_equal": lambda left, right: left <= right,
    "greater": lambda left, right: left > right,
    "greater_equal": lambda left, right: left >= right,
    "between": lambda value, low, high: value.between(low, high),
    "and": lambda left, right: left & right,
    "or": lambda left, right: left | right,
    "not": lambda value: ~value,
    "is_null": lambda value: value.isNull(),
    "is_not_null": lambda value: value.isNotNull(),
    "is_in": lambda value, *others: value.isin(*others),
    "str_starts_with": lambda value, text: value.startswith(text),
    "str_ends_with": lambda value, text: value.endswith(text),
    "str_contains": lambda value, text: value.contains(text),
    "str_matches": lambda value, pattern: value.rlike(pattern),
    "dt_year": F.year,
}
_AGGREGATES = {"sum": F.sum, "avg": F.avg, "min": F.min, "max": F.max, "count": F.count}


def _column(expression):
    match expression:
        case ColumnRef(name=name):
            return F.col(name)
        case Literal():
            return F.lit(literal_scalar(expression).as_py())
        case Case(branches=branches, otherwise=otherwise):
            (condition, value), *others = branches
            column = F.when(_column(condition), _column(value))
            for condition, value in others:
                column = column.when(_column(condition), _column(value))
            return column if otherwise is None else column.otherwise(_column(otherwise))
    if expression.function == "str_slice":
        start, stop = expression.options["start"] or 0, expression.options["stop"]
        return F.substring(_column(expression.arguments[0]), start + 1, stop - start)
    if expression.function == "str_contains" and expression.options.get("regex"):
        return _column(expression.arguments[0]).rlike(expression.arguments[1].value)
    return _CALLS[expression.function](*map(_column, expression.arguments))


def _aggregate(call):
    if call.function == "count_all":
        return F.count(F.lit(1)).alias(call.name)
    if call.function == "count_distinct":
        return F.count_distinct(_column(call.argument)).alias(call.name)
    return _AGGREGATES[call.function](_column(call.argument)).alias(call.name)


def _joined(operator, left, right):
    how = operator.how.value.lower()
    if not operator.left_keys:
        joined = left.crossJoin(right)
        return joined if operator.condition is None else joined.filter(_column(operator.condition))
    if operator.coalesce_keys and operator.condition is None:
        return left.join(right, list(operator.left_keys), _HOW.get(how, how))
    pairs = zip(operator.left_keys, operator.right_keys, strict=True)
    tests = [F.col(one) == F.col(other) if one != other else left[one] == right[other] for one, other in pairs]
    if operator.condition is not None:
        tests.append(_column(operator.condition))
    return left.join(right, reduce(and_, tests), _HOW.get(how, how))


def _sorted(operator, data):
    order = [F.col(key.column).desc() if key.descending else F.col(key.column).asc() for key in operator.keys]
    data = data.orderBy(*order)
    return data if operator.limit is None else data.limit(operator.limit)


def _projected(operator, data):
    kept = {each.name: each.expression for each in operator.expressions}
    made = {name: _column(each) for name, each in kept.items() if each != ColumnRef(name)}
    if made and set(data.columns) <= set(kept):
        return data.withColumns(made)
    return data.select(*(made[name].alias(name) if name in made else name for name in kept))


def by_hand(session, plan):
    """Return the rows of a plan's only output, or of its last node."""
    made = {}
    for node in plan.nodes:
        if not isinstance(node.operator, Sink):
            made[node.id] = _made(session, node.operator, [made[each] for each in node.inputs])
    return made[max(made)]


def _made(session, operator, inputs):
    match operator:
        case Source(spec=spec):
            return session.read.parquet(*(f"file://{path}" for path in spec.paths))
        case Filter(predicate=predicate):
            return inputs[0].filter(_column(predicate))
        case Project():
            return _projected(operator, inputs[0])
        case Join():
            return _joined(operator, *inputs)
        case Aggregate():
            if not operator.calls:
                return inputs[0].select(*operator.keys).distinct()
            return inputs[0].groupBy(*operator.keys).agg(*map(_aggregate, operator.calls))
        case Sort():
            return _sorted(operator, inputs[0])
        case Limit(count=count):
            return inputs[0].limit(count)
    raise NotImplementedError(operator)
