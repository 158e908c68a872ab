"""TABLESAMPLE and USING SAMPLE: a share of the rows, each by itself, or a number of them.

    t TABLESAMPLE (10 PERCENT) REPEATABLE (3)     each row with a probability of 0.1: BERNOULLI, SYSTEM
    t TABLESAMPLE (20 ROWS)                       the 20 rows with the least random numbers: RESERVOIR

Held by: tests/sql/test_samples.py
"""

from __future__ import annotations

from sqlglot import exp

from engine.api.data_set import DataSet
from engine.column_expressions.row_functions import rand
from engine.dialects.parser import sentence
from engine.errors import PlanError
from engine.sql.frames import Context


def sampled(data: DataSet, node: exp.TableSample, context: Context, place: exp.Expr) -> DataSet:
    """Return a sample of rows; ``place``: what errors are about."""
    session = context.session
    percent, size = node.args.get("percent"), node.args.get("size")
    is_share = percent is not None or str(node.args["method"]).upper() in ("BERNOULLI", "SYSTEM")
    seed = _number(node.args.get("seed"), context)
    if seed is None:
        session.repeats.end()
    count = _number(percent if percent is not None else size, context)
    if count is None or (is_share and not 0 <= count <= 100) or (not is_share and count != int(count)):
        what = "percent" if is_share else "rows"
        given = percent if percent is not None else size
        shown = "?" if given is None else given.sql(dialect="duckdb")
        said = f"a sample of {shown} {what}; write (10 PERCENT), or (100 ROWS)"
        raise PlanError(sentence(place, said, session.text))
    if is_share:
        return data.sample(count / 100, None if seed is None else int(seed))
    drawn = session.names.unique("drawn")
    numbered = data.with_columns(**{drawn: rand(None if seed is None else int(seed))})
    return numbered.top(int(count), [drawn], descending=False).drop(drawn)


def _number(node: exp.Expr | None, context: Context) -> float | None:
    """Return the number that is written, or that a parameter has; None for another expression."""
    if isinstance(node, exp.Placeholder | exp.Parameter):
        value = context.session.parameters[node.name]
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    is_number = isinstance(node, exp.Literal) and not node.is_string
    return float(node.name) if node is not None and is_number else None
