"""Functions of several values of a row, called by their names: ``coalesce(col("a"), col("b"), 0)``.

Held by: tests/api/test_documented_functions.py
"""

from __future__ import annotations

from typing import Any

from engine.column_expressions.expression import Expr, to_expression
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name
from engine.graph.expression import Call


def _call(function: str, values: tuple[Any, ...]) -> Expr:
    if not values:
        raise SchemaError(f"{function}(): give it at least one value")
    return Expr(Call(function, tuple(map(to_expression, values))))


def coalesce(*values: Any) -> Expr:
    """Return the first value that is not null; all widen to their common type.

    >>> values(coalesce(col("x"), col("y"), 0), x=[1, None, None], y=[7, 8, None])
    [1, 8, 0]
    """
    if len(values) > 1 and isinstance(values[0], str):
        raise SchemaError(
            f"coalesce({values[0]!r}, ...): a text is a constant here, which is never null; write"
            f" coalesce(col({values[0]!r}), ...) for the column"
        )
    return _call("coalesce", values)


def least(*values: Any) -> Expr:
    """Return the least value; nulls are passed over, NaN is the greatest number.

    >>> values(least(col("x"), col("y"), 3), x=[1, 5, None], y=[2, 4, 9])
    [1, 3, 3]
    """
    return _call("least", values)


def greatest(*values: Any) -> Expr:
    """Return the greatest value; nulls are passed over, NaN is the greatest number.

    >>> values(greatest(col("x"), col("y")), x=[1, 5, None], y=[2, 4, None])
    [2, 5, None]
    """
    return _call("greatest", values)


def array(*values: Any) -> Expr:
    """Return the list of some values of each row; all widen to their common type.

    >>> values(array(col("x"), 0), x=[1, None])
    [[1, 0], [None, 0]]
    """
    return _call("array", values)


def struct(**fields: Any) -> Expr:
    """Return a struct of some values of each row, by their names.

    >>> values(struct(a=col("x"), b="c"), x=[1, None])
    [{'a': 1, 'b': 'c'}, {'a': None, 'b': 'c'}]
    """
    if not fields:
        raise SchemaError("struct(): give it at least one field, as in struct(name=col('a'))")
    names: dict[str, bool | int | float | str | None] = {}
    names |= {str(index): check_column_name(name, "struct") for index, name in enumerate(fields)}
    return Expr(Call("struct", tuple(map(to_expression, fields.values())), names))


def map_from(keys: Any, values: Any) -> Expr:
    """Return the map of a list of keys and one of values; a null key, one twice, or two lengths fail the job.

    >>> values(map_from(col("k"), col("v")), k=[["a", "b"], None], v=[[1, 2], [3]])
    [[('a', 1), ('b', 2)], None]
    """
    return Expr(Call("map_from", (to_expression(keys), to_expression(values))))


def hash64(*values: Any) -> Expr:
    """Return a hash of some values as int64: Spark's xxhash64, the same everywhere and in every release.

    The type counts: an int32 and an int64 of the same value differ. Null leaves the hash of the values before it.

    >>> values(hash64(col("x"), col("y")), x=[1, None], y=["a", "a"])
    [-8527884376001292090, -8582455328737087284]
    """
    return _call("hash64", values)


def rand(seed: int | None = None) -> Expr:
    """Return a number from 0 up to 1 for each row, in ``select`` and ``with_columns``.

    A seed gives the same numbers to the same rows behind a source that is read in the same splits by as many subtasks;
    behind an exchange, such as a join's, rows come in another order each time. Without a seed one is drawn here. For a
    value that stays with the row take ``hash64`` of its key.

    >>> values(rand(7) < 1)
    [True]
    """
    if seed is None:
        import secrets

        seed = secrets.randbits(62)
    if isinstance(seed, bool) or not isinstance(seed, int) or not -(2**63) <= seed < 2**63:
        raise SchemaError(f"rand({seed!r}): the seed is an int of 64 bits")
    return Expr(Call("rand", (), {"seed": seed}))


def row_place() -> Expr:
    """Return a number that grows from row to row, with gaps, in ``select`` and ``with_columns``.

    It is the subtask's number and the row's within it: the order in which ``collect()`` gives the rows. Spark calls it
    ``monotonically_increasing_id``. ``with_row_index`` numbers rows without gaps.

    >>> values(row_place(), x=["a", "b", "c"])
    [0, 1, 2]
    """
    return Expr(Call("row_place", ()))
