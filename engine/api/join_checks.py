"""Checks of a join's keys while it runs: ``join(other, on="k", validate="1:m")``.

    1:1   no key twice on either side        1:m   none twice on the left        m:1   none twice on the right

The rows of a side are counted by key, a window function; where a key is there twice, the job ends with an error that
shows it and its number of rows. A null matches nothing and is not counted, unless the join is null safe.

Held by: tests/integration/test_join_validation.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from engine.column_expressions.aggregates import count
from engine.column_expressions.expression import Expr
from engine.errors import SchemaError
from engine.graph.expression import ColumnRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.lowering.join_keys import JoinKeys


class Side(Protocol):
    """A data set of a join."""

    def with_columns(self, *columns: Any, **named: Any) -> Self:
        """Return this data set with other columns."""
        ...


D = TypeVar("D", bound=Side)

#: word -> whether keys are single, left and right
_FORMS: Final = {"1:1": (True, True), "1:m": (True, False), "m:1": (False, True), "m:m": (False, False)}
_SPELLINGS: Final = {"one_to_one": "1:1", "one_to_many": "1:m", "many_to_one": "m:1", "many_to_many": "m:m"}


def validated(sides: tuple[D, D], keys: JoinKeys, validate: Any) -> list[D]:
    """Return both data sets, checked where the form says so; SchemaError for a form that is none."""
    form = _SPELLINGS.get(validate, validate)
    if form not in _FORMS:
        raise SchemaError(f"join validate={validate!r}: choose one of {', '.join(_FORMS)}")
    if not keys.pairs:
        raise SchemaError(f"join validate={validate!r}: the join has no keys that are equal")
    found = []
    for side, (data, is_single, place) in enumerate(zip(sides, _FORMS[form], ("left", "right"), strict=True)):
        columns = (pair[side] for pair in keys.pairs)
        names = [column.name for column in columns if isinstance(column, ColumnRef)]
        if is_single and len(names) < len(keys.pairs):
            raise SchemaError(f"join validate={validate!r}: a key is an expression; make a column of it first")
        message = f"join validate={form!r}: a key is there more than once on the {place} side"
        found.append(_single(data, names, keys.null_safe, message) if is_single else data)
    return found


def _single(data: D, names: list[str], null_safe: Sequence[bool], message: str) -> D:
    """Return a data set that ends the job where it has a key twice."""
    is_single: Expr = count().over(names) == 1
    for name, is_value in zip(names, null_safe, strict=True):
        if not is_value:
            is_single = is_single | Expr(ColumnRef(name)).is_null()
    first = Expr(ColumnRef(names[0]))
    return data.with_columns(**{names[0]: first.require(is_single, message)})
