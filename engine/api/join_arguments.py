"""Arguments of joins as the plan has them: types, hints and keys, checked.

    how="left_outer"            JoinType.LEFT, in any of the usual spellings
    on=, left_on=, right_on=    keys, pairwise: columns and expressions
    null_safe=                  a flag for each key

Held by: tests/integration/test_join_forms.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.column_expressions.expression import Expr
from engine.column_expressions.named_columns import column_name, flattened
from engine.column_expressions.windows import plain_distance
from engine.errors import SchemaError
from engine.graph.expression import ColumnRef, Expression
from engine.graph.said_operators import AsofDirection, AsofJoinBy, JoinHint, JoinType
from engine.lowering.join_keys import JoinKeys

if TYPE_CHECKING:
    from engine.choices import JoinHintName

#: spellings of join types in Spark, Polars, pandas and DuckDB, without underscores, hyphens and spaces
_SPELLINGS: Final = {
    **{how.value: how for how in JoinType},
    **dict.fromkeys(("outer", "fullouter"), JoinType.FULL),
    "leftouter": JoinType.LEFT,
    "rightouter": JoinType.RIGHT,
    "leftsemi": JoinType.SEMI,
    "leftanti": JoinType.ANTI,
    "crossjoin": JoinType.CROSS,
}
#: names from other libraries for parameters that have another name here
_ELSEWHERE: Final = {
    "asof": "data_set.asof_join(other, on=..., by=...) joins with the nearest row in time",
    "positional": "with_row_index() on both sides makes a key",
    "rightsemi": "exchange the data sets: right.join(left, how='semi')",
    "rightanti": "exchange the data sets: right.join(left, how='anti')",
    "natural": "name the columns: on=[...]",
}


def join_type(how: object) -> JoinType:
    """Return the join type of a word, in any of the usual spellings; SchemaError listing them for another."""
    word = how.lower().replace("_", "").replace("-", "").replace(" ", "") if isinstance(how, str) else ""
    found = _SPELLINGS.get(word) or _SPELLINGS.get(word.removesuffix("join"))
    if found is None:
        instead = f" ({_ELSEWHERE[word]})" if word in _ELSEWHERE else ""
        raise SchemaError(f"join how={how!r}: choose one of {', '.join(JoinType)}{instead}")
    return found


class KeyArguments(NamedTuple):
    """The keys of a join as they are given: ``on``, or ``left_on`` and ``right_on``."""

    on: Any
    left_on: Any
    right_on: Any
    null_safe: Any


def join_keys(how: JoinType, arguments: KeyArguments, *, has_condition: bool) -> JoinKeys:
    """Return the keys of both sides, pairwise; none of a cross join, and of one with a condition alone."""
    given = [name for name in ("on", "left_on", "right_on") if getattr(arguments, name) is not None]
    pairs: list[tuple[Any, Any]] = []
    if how is JoinType.CROSS:
        if given:
            raise SchemaError(f"a cross join has no keys; leave {' and '.join(given)} out")
    elif given == ["on"]:
        values = flattened([arguments.on])
        if not values:
            raise SchemaError("join on=[]: name at least one key; all pairs of rows are how='cross'")
        pairs = list(zip(values, values, strict=True))
    elif given == ["left_on", "right_on"]:
        lefts, rights = flattened([arguments.left_on]), flattened([arguments.right_on])
        if not lefts or len(lefts) != len(rights):
            raise SchemaError(f"join: {len(lefts)} keys left, {len(rights)} right; they go in pairs")
        pairs = list(zip(lefts, rights, strict=True))
    elif given or not has_condition:
        raise SchemaError(
            f"join: give on=, or left_on= and right_on=, or condition=; {' and '.join(given) or 'neither'} given"
        )
    named = [pair for pair in pairs if isinstance(pair[0], str) and isinstance(pair[1], str)]
    if len(set(named)) < len(named):
        raise SchemaError(f"join: a key is given twice: {', '.join(str(one) for one, _ in named)}")
    keys = [(key_expression(one), key_expression(other)) for one, other in pairs]
    return JoinKeys(keys, given == ["on"], _null_safe_flags(arguments.null_safe, len(keys)))


def key_expression(key: Any) -> Expression:
    """Return a key of a join, the name of a column or an expression."""
    return key.expression if isinstance(key, Expr) else ColumnRef(column_name(key, "join keys"))


def _null_safe_flags(null_safe: Any, count: int) -> list[bool]:
    """Return a flag for each key: whether null equals null; SchemaError for values other than booleans."""
    given = list(null_safe) if isinstance(null_safe, list | tuple) else [null_safe]
    flags = given * count if isinstance(null_safe, bool) else given
    if len(flags) != count or not all(isinstance(flag, bool) for flag in flags):
        raise SchemaError(f"join null_safe={null_safe!r}: True, False, or one of them for each of {count} keys")
    return flags


def join_condition(condition: Any) -> Expression | None:
    """Return the expression of ``condition=``."""
    if condition is not None and not isinstance(condition, Expr):
        raise SchemaError(f"join condition={condition!r}: expected an expression such as col('a') < col('b')")
    return None if condition is None else condition.expression


def join_hint(hint: JoinHint | JoinHintName | None) -> JoinHint:
    """Return a hint, given as itself or by name; SchemaError listing them for another."""
    if hint is None:
        return JoinHint.OPTIMIZER_CHOOSES
    try:
        return JoinHint(hint)
    except ValueError:
        raise SchemaError(
            f"Unrecognized join hint {hint!r}: choose one of {', '.join(JoinHint)}. "
            "In SQL a hint is written SELECT /*+ BROADCAST(t) */"
        ) from None


class AsofArguments(NamedTuple):
    """The match of an as-of join as the user writes it: which row of the other side a row gets."""

    on: Any
    left_on: Any
    right_on: Any
    by: Any
    direction: str
    tolerance: Any
    allow_exact_matches: bool


def asof_join_by(arguments: AsofArguments, suffix: str | None) -> AsofJoinBy:
    """Return an as-of join as the plan says it."""
    on, by = _times(arguments), [] if arguments.by is None else flattened([arguments.by])
    return AsofJoinBy(
        tuple(map(key_expression, by)),
        on,
        arguments.on is not None,
        _direction(arguments.direction),
        not arguments.allow_exact_matches,
        plain_distance(arguments.tolerance, "asof_join tolerance"),
        suffix,
    )


def _times(arguments: AsofArguments) -> tuple[Expression, Expression]:
    """Return the columns that are compared, left and right."""
    given = [name for name in ("on", "left_on", "right_on") if getattr(arguments, name) is not None]
    if given == ["on"]:
        columns = (arguments.on, arguments.on)
    elif given == ["left_on", "right_on"]:
        columns = (arguments.left_on, arguments.right_on)
    else:
        raise SchemaError(f"asof_join: give on=, or left_on= and right_on=; {' and '.join(given) or 'neither'} given")
    for column in columns:
        if len(flattened([column])) != 1:
            raise SchemaError(f"asof_join on={column!r}: one column; those that must be equal are by=[...]")
    left, right = (key_expression(flattened([column])[0]) for column in columns)
    return left, right


def _direction(word: str) -> AsofDirection:
    try:
        return AsofDirection(word)
    except ValueError:
        raise SchemaError(f"asof_join direction={word!r}: choose one of {', '.join(AsofDirection)}") from None
