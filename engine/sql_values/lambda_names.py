"""Names of SQL's functions that take a function of elements, and what each is of ours.

    LISTS["list_apply"] -> "list_transform"      MAPS["transform_keys"] -> ("list_transform", "key")

Held by: tests/sql/test_lambdas.py
"""

from __future__ import annotations

from typing import Final

LISTS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("list_transform", "list_apply", "apply", "array_transform", "array_apply", "transform"), "list_transform"
    ),
    **dict.fromkeys(("list_filter", "array_filter", "filter"), "list_filter"),
    **dict.fromkeys(("list_reduce", "array_reduce", "reduce"), "list_reduce"),
    # Spark's, whose first total comes before the function
    "aggregate": "list_reduce",
}
#: function of the entries of a map, and the part of an entry that the body makes
MAPS: Final[dict[str, tuple[str, str]]] = {
    "map_filter": ("list_filter", ""),
    "transform_keys": ("list_transform", "key"),
    "transform_values": ("list_transform", "value"),
}
LAMBDA_NAMES: Final = frozenset((*LISTS, *MAPS))


def sample_of(name: str) -> str:
    """Return an example of the call of a function, in a sentence."""
    if name in MAPS:
        return f"{name}() takes a map and a function, as in {name}(m, (k, v) -> v)"
    parameters = "(a, x)" if LISTS[name] == "list_reduce" else "x"
    return f"{name}() takes a list and a function, as in {name}(l, {parameters} -> x + 1)"
