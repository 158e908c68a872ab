"""Conditions of a query: comparisons, AND and OR, IN, BETWEEN, LIKE, patterns, ANY and ALL.

Held by: tests/sql/test_expressions.py
Held by: tests/sql/test_rows_compared.py
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Final

import pyarrow as pa
from sqlglot import exp

from engine.api.expression import Expr
from engine.api.expressions import lit
from engine.errors import NotYetSupportedError, PlanError
from engine.sql import dependent
from engine.sql.constants import computed, is_constant, is_null, scalar_of
from engine.sql.data_types import shown_type
from engine.sql.frames import Binder
from engine.sql.function_calls import called
from engine.sql.list_functions import is_any
from engine.sql.operators import compared, conjoined, fitted, is_text, rows_compared, without_widening

COMPARISONS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_QUERIES: Final = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
MATCHES: Final[dict[type[exp.Expr], tuple[str, str]]] = {
    exp.RegexpLike: ("regexp_matches", ""),
    exp.RegexpFullMatch: ("regexp_matches", ""),
    exp.RegexpILike: ("regexp_matches", "i"),
}


class Conditions(ABC):
    """Base of Expressions with its conditions."""

    @property
    @abstractmethod
    def own(self) -> Binder:
        """The whole binder."""

    @abstractmethod
    def bind(self, node: exp.Expr) -> Expr:
        """See Expressions."""

    @abstractmethod
    def all(self, nodes: Sequence[exp.Expr]) -> list[Expr]:
        """See Expressions."""

    @abstractmethod
    def condition(self, node: exp.Expr, what: str) -> Expr:
        """See Expressions."""

    @abstractmethod
    def type_of(self, value: Expr) -> pa.DataType:
        """See Expressions."""

    @abstractmethod
    def said(self, node: exp.Expr, words: str) -> str:
        """See Expressions."""

    def _connected(self, node: exp.Connector) -> Expr:
        is_and = isinstance(node, exp.And)
        word = "AND" if is_and else "OR"
        return conjoined([self.condition(one, word) for one in node.flatten()], is_and)

    def _not(self, node: exp.Not) -> Expr:
        inner = node.this.unnest()
        if isinstance(inner, exp.In) and inner.args.get("query") is not None:
            return ~self.bind(inner)
        return ~self.condition(node.this, "NOT")

    def _compared(self, node: exp.Binary) -> Expr:
        sign = COMPARISONS[type(node)]
        left, right = node.this, node.expression
        for one, other, turned in ((left, right, sign), (right, left, _turned(sign))):
            if isinstance(other, exp.Any | exp.All):
                return self._quantified(node, one, turned, other)
            if isinstance(other, exp.Anonymous) and other.name.lower() == "all" and len(other.expressions) == 1:
                if turned != "<>":
                    raise NotYetSupportedError(self.said(node, f"{turned} ALL (list); write it with list functions"))
                return ~is_any(self.bind(other.expressions[0]), self.bind(one))
        if isinstance(left.unnest(), exp.Tuple) or isinstance(right.unnest(), exp.Tuple):
            return rows_compared(sign, self._row(left), self._row(right), self.type_of)
        return compared(sign, self.bind(left), self.bind(right), self.type_of)

    def _row(self, node: exp.Expr) -> list[Expr]:
        inner = node.unnest()
        if not isinstance(inner, exp.Tuple):
            raise PlanError(self.said(node, "a row is compared with what is none"))
        return self.all(inner.expressions)

    def _quantified(self, node: exp.Expr, one: exp.Expr, sign: str, other: exp.Expr) -> Expr:
        inner = other.this.unnest() if isinstance(other.this, exp.Paren) else other.this
        if isinstance(inner, _QUERIES):
            return dependent.quantified(self.own, node, one, sign, inner, is_all=isinstance(other, exp.All))
        if sign != "=" or isinstance(other, exp.All):
            raise NotYetSupportedError(
                self.said(node, f"{sign} {other.key.upper()} (list); write it with list functions")
            )
        return is_any(self.bind(inner), self.bind(one))

    def _is(self, node: exp.Is) -> Expr:
        wanted = node.expression
        if isinstance(wanted, exp.Null):
            return self.bind(node.this).is_null()
        if isinstance(wanted, exp.Boolean):
            return self.condition(node.this, "IS").eq_null_safe(lit(bool(wanted.this)))
        return compared("IS NOT DISTINCT FROM", self.bind(node.this), self.bind(wanted), self.type_of)

    def _between(self, node: exp.Between) -> Expr:
        value, low, high = fitted(self.all([node.this, node.args["low"], node.args["high"]]), self.type_of)
        below, above = compared(">=", value, low, self.type_of), compared("<=", value, high, self.type_of)
        if node.args.get("symmetric"):
            turned = compared(">=", value, high, self.type_of) & compared("<=", value, low, self.type_of)
            return (below & above) | turned
        if is_constant(low) and is_constant(high) and not is_null(low) and not is_null(high):
            return below & above
        return conjoined([computed(below), computed(above)], is_and=True)

    def _in(self, node: exp.In) -> Expr:
        if node.args.get("query") is not None:
            return dependent.membership(self.own, node)
        if node.args.get("unnest") is not None:
            return is_any(self.bind(node.args["unnest"].expressions[0]), self.bind(node.this))
        options = node.expressions
        if len(options) == 1 and isinstance(options[0], _QUERIES):
            return dependent.membership(self.own, node)
        if isinstance(node.this.unnest(), exp.Tuple):
            row = self._row(node.this)
            return reduce(or_, (rows_compared("=", row, self._row(one), self.type_of) for one in options), lit(False))
        if not options:
            return lit(False)
        value, *others = fitted([self.bind(node.this), *self.all(options)], self.type_of)
        for other in others:
            compared("=", value, other, self.type_of)
        if all(map(is_constant, others)):
            return self._among(value, others)
        return reduce(or_, (compared("=", value, other, self.type_of) for other in others))

    def _among(self, value: Expr, others: Sequence[Expr]) -> Expr:
        value, *others = without_widening([value, *others], self.type_of)
        return value.is_in(list(others))

    def _like(self, node: exp.Expr) -> Expr:
        escape = None
        if isinstance(node, exp.Escape):
            escape, node = node.expression.name, node.this
        name = "str_ilike" if isinstance(node, exp.ILike) else "str_like"
        if isinstance(node.expression, exp.Any | exp.All):
            raise NotYetSupportedError(self.said(node, "LIKE ANY; write a LIKE for each pattern, with OR"))
        value, pattern = self.bind(node.this), self.bind(node.expression)
        types = [self.type_of(value), self.type_of(pattern)]
        sign = "ILIKE" if name == "str_ilike" else "LIKE"
        if is_null(value) or is_null(pattern):
            return lit(None, pa.bool_())
        if not all(map(is_text, types)):
            raise PlanError(
                self.said(node, f"{shown_type(types[0])} {sign} {shown_type(types[1])} is not defined; cast one side")
            )
        if escape is not None and escape != "\\":
            pattern = self._escaped(node, pattern, escape)
        found = value.call(name, pattern)
        return ~found if node.args.get("negate") else found

    def _escaped(self, node: exp.Expr, pattern: Expr, escape: str) -> Expr:
        """Return a pattern whose escape is the one that patterns have."""
        if not is_constant(pattern):
            raise NotYetSupportedError(self.said(node, "ESCAPE of a pattern that is a column"))
        written, found, at = str(scalar_of(pattern).as_py()), "", 0
        while at < len(written):
            if written[at] == escape and at + 1 < len(written):
                found += f"\\{written[at + 1]}" if written[at + 1] in "%_\\" else written[at + 1]
                at += 2
                continue
            found += "\\\\" if written[at] == "\\" else written[at]
            at += 1
        return lit(found)

    def _matched(self, node: exp.Expr) -> Expr:
        name, flags = MATCHES[type(node)]
        given = [self.bind(node.this), self.bind(node.expression), *([lit(flags)] if flags else [])]
        return called(self.own, node, name, given)

    def _full_match(self, node: exp.Expr) -> Expr:
        return called(self.own, node, "regexp_full_match", [self.bind(node.this), self.bind(node.expression)])


def _turned(sign: str) -> str:
    return {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
