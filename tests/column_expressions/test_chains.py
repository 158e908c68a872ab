"""Chains of one operator: as written while they are short, trees that can be walked and one call of texts when long."""

import functools
import operator

import pyarrow as pa
import pytest

from engine import Environment, col, count, interval, lit, sum_
from engine.expressions.infer import DEPTH_MAX
from engine.graph.expression import CHAINED_MAX, Call, depth_of

MANY = 10_000
OPERATORS = {"or": operator.or_, "and": operator.and_, "add": operator.add}
LEAVES = {"or": lambda n: col("x") == n, "and": lambda n: col("x") != n, "add": lambda n: col("x") + n}


def terms_of(expression, function):
    """Return the terms of a chain from left to right, whatever its tree."""
    found, waiting = [], [expression]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Call) and one.function == function:
            waiting += reversed(one.arguments)
        else:
            found.append(one)
    return found


@pytest.fixture
def data():
    with Environment(config={"parallelism.default": 1}) as environment:
        yield environment.from_arrow(pa.table({"x": [1, 2, None, 20_000], "s": ["a", "", None, "z"]}))


@pytest.mark.parametrize("name", OPERATORS)
def test_a_short_chain_is_the_tree_that_was_written(name):
    leaves = [col(f"c{number}") for number in range(CHAINED_MAX)]
    expression = functools.reduce(OPERATORS[name], leaves).expression
    for leaf in reversed(leaves[1:]):
        assert (expression.function, expression.arguments[1]) == (name, leaf.expression)
        expression = expression.arguments[0]
    assert expression == leaves[0].expression


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("is_right", [False, True])
def test_a_long_chain_keeps_its_terms_in_order_and_can_be_walked(name, is_right):
    leaves = [col(f"c{number}") for number in range(MANY)]
    if is_right:
        chain = functools.reduce(lambda after, leaf: OPERATORS[name](leaf, after), reversed(leaves))
    else:
        chain = functools.reduce(OPERATORS[name], leaves)
    assert terms_of(chain.expression, name) == [leaf.expression for leaf in leaves]
    assert depth_of(chain.expression) < DEPTH_MAX // 2
    again = OPERATORS[name](chain, lit(7)).expression
    assert len(terms_of(again, name)) == MANY + 1


@pytest.mark.parametrize(
    ("name", "many"), [("or", 1500), ("and", 1500), ("add", 1500), pytest.param("or", MANY, marks=pytest.mark.thorough)]
)
def test_thousands_of_terms_are_planned_and_run(data, name, many):
    chain = functools.reduce(OPERATORS[name], [LEAVES[name](number) for number in range(many)])
    if name == "add":
        wanted = [None if x is None else x * many + sum(range(many)) for x in (1, 2, None, 20_000)]
        assert [row.t for row in data.select(t=chain).collect()] == wanted
    else:
        kept = {1, 2} if name == "or" else {20_000}
        assert {row.x for row in data.filter(chain).collect()} == kept
        assert data.filter(~chain).count() == 3 - len(kept)


def test_texts_of_a_chain_are_one_call(data):
    chain = functools.reduce(lambda before, _: before.str.concat("-", col("s")), range(3000), col("s"))
    assert isinstance(chain.expression, Call)
    assert len(chain.expression.arguments) == 6001
    assert [row.t for row in data.select(t=chain).collect()] == ["a" + "-a" * 3000, "-" * 3000, None, "z" + "-z" * 3000]
    apart = col("s").str.concat(col("s"), separator="+").str.concat("!", separator="").expression
    assert list(apart.arguments[1:]) == [lit("!").expression]
    assert data.select(t=col("s").str.concat("b", separator="+").str.concat("!")).collect()[0].t == "a+b!"


def test_sums_of_aggregates_are_chains_too(data):
    total = functools.reduce(operator.add, [sum_("x") + number for number in range(1000)])
    (row,) = data.group_by().agg(t=total, n=count()).collect()
    assert row.t == 20_003 * 1000 + sum(range(1000))


def test_months_are_added_to_a_day_one_after_the_other():
    chain = functools.reduce(operator.add, [interval(months=1)] * (CHAINED_MAX + 5), col("day")).expression
    for _ in range(CHAINED_MAX + 5):
        assert chain.function == "add"
        chain = chain.arguments[0]
    assert chain == col("day").expression
