"""Names of SQL's functions that take a function of elements, and what each is of ours.

    ELEMENT_CALLS["list_apply"].function -> "list_transform"      ELEMENT_CALLS["transform_keys"].part -> "key"

Held by: tests/sql/test_lambdas.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit, when


def _same(found: Expr) -> Expr:
    return found


def _maybe(found: Expr) -> Expr:
    """Return null where a condition is null for an element, else false."""
    is_unknown = found.list.transform(lambda one: one.is_null()).list.any()
    return when(is_unknown).then(None).otherwise(lit(False))


def _exists(found: Expr) -> Expr:
    return found.list.any() | _maybe(found)


def _for_all(found: Expr) -> Expr:
    return found.list.all() & ~_maybe(found)


class ElementCall(NamedTuple):
    """Parts of a function: how many values it takes, and parameters its function, at least and at most.

    ``part``: elements are pairs, of which the body makes a key, a value, or with "" an element. ``kind``: of its
    values. ``result``: of the list that comes out.
    """

    function: str
    sample: str
    values: tuple[int, int] = (1, 1)
    parameters: tuple[int, int] = (1, 2)
    part: str | None = None
    kind: str = "list"
    result: Callable[[Expr], Expr] = _same


_TRANSFORM: Final = ("list_transform", "list_apply", "apply", "array_transform", "array_apply", "transform")
_REDUCE: Final = ElementCall("list_reduce", "(l, (a, x) -> a + x)", (1, 2), (2, 3))
_ENTRIES: Final = {"map_filter": ("list_filter", ""), "transform_keys": ("list_transform", "key")}
ELEMENT_CALLS: Final[dict[str, ElementCall]] = {
    **dict.fromkeys(_TRANSFORM, ElementCall("list_transform", "(l, x -> x + 1)")),
    **dict.fromkeys(("list_filter", "array_filter", "filter"), ElementCall("list_filter", "(l, x -> x > 1)")),
    # aggregate is Spark's, whose first total comes before the function
    **dict.fromkeys(("list_reduce", "array_reduce", "reduce", "aggregate"), _REDUCE),
    "exists": ElementCall("list_transform", "(l, x -> x > 1)", parameters=(1, 1), result=_exists),
    "forall": ElementCall("list_transform", "(l, x -> x > 1)", parameters=(1, 1), result=_for_all),
    "zip_with": ElementCall("list_transform", "(l, m, (x, y) -> x + y)", (2, 2), (2, 2), ""),
    **{
        name: ElementCall(
            function,
            "(m, (k, v) -> v)",
            parameters=(2, 2),
            part=part,
            kind="map",
            result=lambda found: found.call("map_from_entries"),
        )
        for name, (function, part) in {**_ENTRIES, "transform_values": ("list_transform", "value")}.items()
    },
}
LAMBDA_NAMES: Final = frozenset(ELEMENT_CALLS)


def sample_of(name: str) -> str:
    """Return an example of the call of a function, in a sentence."""
    row = ELEMENT_CALLS[name]
    what = "two lists" if row.values[0] == 2 else f"a {row.kind}"
    return f"{name}() takes {what} and a function, as in {name}{row.sample}"


def pairs_of(kind: str, values: list[Expr]) -> Expr:
    """Return the entries of a map, or what two lists have at each place; null where one of them is."""
    if kind == "map":
        return values[0].map.entries()
    zipped = values[0].list.zip(values[1], names=["key", "value"])
    return when(values[0].is_not_null() & values[1].is_not_null()).then(zipped)
