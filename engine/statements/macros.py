"""Macros: expressions and queries with parameters, written in a query where they are called.

    CREATE MACRO net(price, tax := 0.19) AS price / (1 + tax)      SELECT net(p, tax := 0.07) FROM orders
    CREATE MACRO latest(n) AS TABLE SELECT ... LIMIT n             SELECT * FROM latest(3)

    expanded(statement, macros)      the statement with the body of each macro in the place of its call

A call becomes its body, with the arguments in the place of the parameters, before names are bound: a macro may be of
aggregates, and names that are no parameters are those of the query that calls it. Columns of an argument are those of
the query that calls the macro, too, whatever the tables of queries within the body have. Arguments of a macro of a
table are a part of its query. What is wrong is said at the call.

Held by: tests/sql/test_macros.py
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Final, NamedTuple

from sqlglot import exp

from engine.dialects.parser import parsed, sentence
from engine.errors import PlanError
from engine.near_names import did_you_mean
from engine.sql.frames import name_outside

#: calls that one statement expands, those within macros included
_CALLS_MAX: Final = 10_000
_PLACES: Final = ("start", "end", "line", "col")
#: expressions that stand in parentheses where they are a part of another one
_OPERATORS: Final = (exp.Binary, exp.Unary, exp.Between, exp.In)
#: parts of a query whose queries see the same rows outside as the query itself
_OF_QUERIES: Final = (exp.SetOperation, exp.CTE, exp.From, exp.Join)
#: arguments with a name, f(a := 1) and f(a => 1)
_NAMED: Final = (exp.PropertyEQ, exp.Kwarg)
#: words around a call that are about an aggregate
_OF_AGGREGATES: Final = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


class Macro(NamedTuple):
    """A macro; ``parameters``: names in lower case, and the text of their default or None."""

    name: str
    parameters: tuple[tuple[str, str | None], ...]
    text: str
    is_table: bool

    def body(self) -> exp.Expr:
        """Return the tree of the body. Raises: PlanError for a text that cannot be parsed, or is of the other kind."""
        found = parsed(self.text)
        is_query = isinstance(found, exp.Query | exp.Values) and not isinstance(found, exp.Subquery)
        if self.is_table != is_query:
            said = (
                "AS TABLE is followed by a query"
                if self.is_table
                else "a query of a macro stands in parentheses, or behind AS TABLE"
            )
            raise PlanError(f"CREATE MACRO {self.name}: {said}")
        value = found.find(exp.Placeholder, exp.Parameter)
        if value is not None:
            said = f"the value {value.name} of params; write a parameter of the macro"
            raise PlanError(f"CREATE MACRO {self.name}: {said}")
        return found


def expanded(statement: exp.Expr, macros: Mapping[str, Macro], text: str) -> exp.Expr:
    """Return a statement without calls of macros. Raises: PlanError for a call with other arguments, or without end."""
    waiting, calls = [statement] if macros else [], 0
    while waiting:
        node = waiting.pop()
        is_table = isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous)
        call = node.this if is_table else node
        macro = macros.get(str(call.name).lower())
        if macro is None or not isinstance(call, exp.Anonymous) or macro.is_table != is_table:
            # the name of a function in FROM is no call within an expression
            waiting += [one for one in node.iter_expressions() if one is not call]
            waiting += call.expressions if is_table else []
            continue
        calls += 1
        if macro.name in call.meta.get("macros", ()) or calls > _CALLS_MAX:
            raise PlanError(sentence(call, f"the macro {macro.name}() calls itself, or is called too often", text))
        found = _called(macro, call, text)
        if is_table:
            found = exp.Subquery(this=found, **{name: part for name, part in node.args.items() if name != "this"})
            if not found.alias:
                found.set("alias", exp.TableAlias(this=exp.to_identifier(macro.name)))
        elif isinstance(node.parent, _OF_AGGREGATES) and not isinstance(found, exp.Anonymous):
            said = f"{node.parent.key.upper()} of the macro {macro.name}(), whose body is no aggregate alone"
            raise PlanError(sentence(call, said, text))
        found.meta.update({**call.meta, "macros": found.meta.get("macros", ())})
        statement = found if node is statement else statement
        node.replace(found)
        waiting.append(found)
    return statement


def _called(macro: Macro, node: exp.Anonymous, text: str) -> exp.Expr:
    """Return the body of a macro with the arguments of a call."""
    values = _arguments(macro, node, text)
    body = exp.Paren(this=_placed(macro.body(), node, macro.name))
    tables = {one.alias_or_name.lower() for one in body.find_all(exp.Table, exp.Subquery)}
    _rename_elements(body, values)
    for column in list(body.find_all(exp.Column)):
        first, *fields = column.parts
        value = values.get(first.name.lower())
        if value is None or (fields and first.name.lower() in tables):
            continue
        found = value.copy() if macro.is_table else _seen_from(value, _levels(column, body))
        found = exp.Paren(this=found) if isinstance(found, _OPERATORS) else found
        for field in fields:
            found = exp.Dot(this=found, expression=field.copy())
        column.replace(found)
    whole: exp.Expr = body.this
    return body if isinstance(whole, _OPERATORS) else whole.pop()


def _arguments(macro: Macro, node: exp.Anonymous, text: str) -> dict[str, exp.Expr]:
    """Return the argument of each parameter. Raises: PlanError for those that do not fit."""
    names, defaults = [name for name, _ in macro.parameters], dict(macro.parameters)
    called, given = f"the macro {macro.name}()", dict[str, exp.Expr]()
    for place, one in enumerate(node.expressions):
        name = one.this.name.lower() if isinstance(one, _NAMED) else names[place] if place < len(names) else ""
        said = ""
        if isinstance(one, exp.Distinct | exp.Order):
            said = f"{one.key.upper()} within the call of {called}"
        elif not isinstance(one, _NAMED) and any(isinstance(each, _NAMED) for each in node.expressions[:place]):
            said = f"an argument of {called} without a name stands behind one with a name"
        elif isinstance(one, _NAMED) and name not in defaults:
            said = f"{called} has no parameter {name}{did_you_mean(name, names)} (it has {', '.join(names)})"
        elif name in given and name:
            said = f"{called} is given two values of {name}"
        if said:
            raise PlanError(sentence(one, said, text))
        given[name] = one.expression if isinstance(one, _NAMED) else one
    missing = [name for name in names if name not in given and defaults[name] is None]
    if missing or len(node.expressions) > len(names):
        least = sum(default is None for default in defaults.values())
        takes = f"{least}" if least == len(names) else f"{least} to {len(names)}"
        without = f"; {', '.join(missing)} is missing" if missing else ""
        said = f"{called} has {len(node.expressions)} arguments here and takes {takes}{without}"
        raise PlanError(sentence(node, said, text))
    written = {name: default for name, default in defaults.items() if name not in given and default is not None}
    return {**given, **{name: _placed(parsed(default), node, macro.name) for name, default in written.items()}}


def _placed(tree: exp.Expr, call: exp.Expr, macro: str) -> exp.Expr:
    """Return a part of a macro with the places of its call, as errors have them, and the macros that it is of."""
    marks: dict[str, Any] = {name: call.meta[name] for name in _PLACES if name in call.meta}
    marks["macros"] = (*call.meta.get("macros", ()), macro)
    for node in tree.walk():
        node.meta.clear()
        node.meta.update(marks)
    return tree


def _levels(column: exp.Expr, body: exp.Expr) -> int:
    """Return the number of queries within expressions that lie between a column and the body around it."""
    levels, node = 0, column
    while node is not body and node.parent is not None:
        node = node.parent
        if isinstance(node, exp.Select | exp.SetOperation | exp.Values):
            around = node.parent
            while isinstance(around, exp.Paren | exp.Subquery):
                around = around.parent
            levels += not isinstance(around, _OF_QUERIES)
    return levels


def _seen_from(value: exp.Expr, levels: int) -> exp.Expr:
    """Return an argument whose columns are those of the query so many queries further out."""
    found = exp.Paren(this=value.copy())
    for column in list(found.find_all(exp.Column)) if levels else ():
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        if column.find_ancestor(exp.Query) is None and len(parts) == len(column.parts):
            column.replace(exp.Column(this=name_outside(parts, levels)))
    inner: exp.Expr = found.this
    return inner.pop()


def _rename_elements(body: exp.Expr, values: Mapping[str, exp.Expr]) -> None:
    """Give parameters of functions of list elements other names where a column of an argument has theirs."""
    taken = {column.parts[0].name.lower() for value in values.values() for column in value.find_all(exp.Column)}
    for function in body.find_all(exp.Lambda, exp.Comprehension):
        own = function.expressions or [function.expression]
        names = {one.name.lower() for one in own} & {*taken, *values}
        parts = [function.this, *own, *filter(None, [function.args.get("condition")])] if names else []
        for name in (each for part in parts for each in part.find_all(exp.Identifier)):
            around = name.parent
            is_field = isinstance(around, exp.Dot) and name.arg_key == "expression"
            is_column = isinstance(around, exp.Column) and around.parts[0] is not name
            if name.name.lower() in names and not is_field and not is_column:
                name.set("this", f"{name.name.lower()} of the macro")


def create_macro(
    macros: MutableMapping[str, Any], macro: Macro, *, replaces: bool = False, keeps: bool = False
) -> None:
    """Keep a macro. Raises: PlanError for one that is there, or that cannot be parsed."""
    if macro.name in macros and not replaces:
        if keeps:
            return
        raise PlanError(f"CREATE MACRO {macro.name}: it is there already; write CREATE OR REPLACE MACRO")
    macro.body()
    for name, default in macro.parameters:
        if default is not None and parsed(default).find(exp.Column) is not None:
            raise PlanError(f"CREATE MACRO {macro.name}: the default of {name} has a column; it takes constants")
    if not macro.is_table and not isinstance(_call_of(macro.name), exp.Anonymous):
        raise PlanError(f"CREATE MACRO {macro.name}: this name has a syntax of its own; write another one")
    macros[macro.name] = macro


def _call_of(name: str) -> exp.Expr | None:
    """Return the node of a call of a name, None for a name that cannot be called so."""
    try:
        return parsed(f"SELECT {name}(NULL)").expressions[0] if name.isidentifier() else exp.Anonymous(this=name)
    except PlanError:
        return None


def drop_macro(macros: MutableMapping[str, Any], name: str, if_exists: bool) -> None:
    """Forget a macro. Raises: PlanError for one that is not there."""
    if macros.pop(name, None) is None and not if_exists:
        said = f"there is no such macro{did_you_mean(name, macros)}; write DROP MACRO IF EXISTS"
        raise PlanError(f"DROP MACRO {name}: {said}")
