"""Parameters of a statement: the values that its words $1, :name and $name stand for.

    parameters_of(tree, ["a", 2], text)          {"1": "a", "2": 2}
    parameters_of(tree, {"shop": "a"}, text)     {"shop": "a"}

Each word has a value, and each value a word: what is left on either side is an error.

Held by: tests/sql/test_parameters.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlglot import exp

from engine.dialects.parser import nodes_in, sentence
from engine.errors import PlanError
from engine.near_names import did_you_mean

_FORMS: Final = "params=[...] has the values of $1, $2 and so on, params={...} those of :name"


def parameters_of(statement: exp.Expr, given: object, text: str) -> Mapping[str, Any]:
    """Return the values of a statement's parameters by their names. Raises: PlanError for those that do not fit."""
    nodes = {node.name: node for node in reversed(nodes_in(statement, exp.Placeholder, exp.Parameter))}
    values = _by_name(given)
    for name, node in nodes.items():
        said = _wrong(name, values, given)
        if said:
            raise PlanError(sentence(node, said, text))
    unused = next((name for name in values if name not in nodes), None)
    if unused is not None:
        said = f"params has a value for {'$' if unused.isdigit() else ':'}{unused}, which the statement does not have"
        raise PlanError(f"sql: {said}{did_you_mean(unused, [one for one in nodes if not one.isdigit()])}")
    return values


def _wrong(name: str, values: Mapping[str, Any], given: object) -> str:
    """Return the sentence of a parameter that does not fit, "" for one that does."""
    if name in ("", "?"):
        return f"the parameter ? has no number; write $1 ({_FORMS})"
    if "$" in name:
        return f"the word ${name}; a string is written $$...$$, without a word"
    if name.isdigit() and (name[0] == "0"):
        return f"the parameter ${name}; they are counted from $1"
    if given is None:
        return f"a parameter without a value; pass params={'[...]' if name.isdigit() else '{...}'}"
    if not name.isdigit() and not isinstance(given, Mapping):
        return f"the parameter {name} has a name, and params has none; pass params={{{name!r}: ...}}"
    named = [one for one in values if not one.isdigit()]
    return "" if name in values else f"no value for the parameter {name} in params{did_you_mean(name, named)}"


def _by_name(given: object) -> dict[str, Any]:
    """Return values by the names of parameters. Raises: PlanError for what is no list and no dict."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        wrong = next((key for key in given if not isinstance(key, str)), None)
        if wrong is not None:
            raise PlanError(f"sql: params has the key {wrong!r}; keys are names, as texts")
        return dict(given)
    if isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray):
        return {str(number): value for number, value in enumerate(given, 1)}
    raise PlanError(f"sql: params={given!r} is neither a list nor a dict; {_FORMS}")
