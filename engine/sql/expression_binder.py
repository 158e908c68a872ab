"""Expressions of a query as ours, over the columns of a frame.

    a.k + 1                  col(...) + 1, by the types of both sides (operators.py)
    f(x, y)                  calls.py
    sum(v) OVER (...)        windows.py; sum(v) of groups: the column that ``groups.py`` makes
    (SELECT ...), IN, EXISTS a column that ``dependent.py`` joins to the rows of the frame
    CAST, CASE, IN (1, 2)    here

What reads no column is computed here, by what computes columns (``constants.py``).

Held by: tests/sql/test_expressions.py
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit
from engine.column_expressions.row_functions import array, struct
from engine.dialects.parser import sentence
from engine.errors import EngineError, NotYetSupportedError, PlanError, SchemaError
from engine.expressions.argument_kinds import is_list
from engine.records.plain_scalars import scalar_of as arrow_scalar
from engine.sql import conditions, dependent, windows
from engine.sql.aggregates import is_aggregate
from engine.sql.calls import called
from engine.sql.frames import Frame
from engine.sql.intervals import interval_moved, is_interval, text_of_interval
from engine.sql.lambdas import comprehension, lambda_call
from engine.sql.nested_values import as_json, json_part, map_of, struct_with
from engine.sql_values.casts import cast, text_as
from engine.sql_values.constants import computed, is_constant, is_null, scalar_of
from engine.sql_values.data_types import arrow_type, shown_type
from engine.sql_values.function_calls import OF_UNITS, row_of
from engine.sql_values.lambda_names import LAMBDA_NAMES
from engine.sql_values.list_functions import LIST_FUNCTIONS
from engine.sql_values.operators import bits, calculated, chosen_by, compared, fitted, is_text, joined_texts, truth
from engine.sql_values.spans import interval_of
from engine.sql_values.zones import at_zone

_ARITHMETIC: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
}
_BITS: Final[dict[type[exp.Expr], str]] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}


class Expressions:
    """Binds the expressions of one frame."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def bind(self, node: exp.Expr) -> Expr:
        """Return an expression. Raises: PlanError, NotYetSupportedError, with the place of what is wrong."""
        if id(node) in self.frame.bound:
            return self.frame.bound[id(node)]
        grouping = self.frame.grouping
        if grouping is not None and (found := grouping.found(self, node)) is not None:
            return found
        bind = _BINDERS.get(type(node))
        if bind is None:
            raise NotYetSupportedError(self.said(node, f"the SQL expression {node.key.upper()}"))
        try:
            return computed(bind(self, node))
        except EngineError as error:
            words = str(error)
            if words.startswith("sql: line") or not isinstance(error, PlanError | SchemaError | NotYetSupportedError):
                raise
            kind = NotYetSupportedError if isinstance(error, NotYetSupportedError) else PlanError
            raise kind(self.said(node, words.removeprefix("sql: "))) from None

    def all(self, nodes: Sequence[exp.Expr]) -> list[Expr]:
        """Return the expressions of several nodes."""
        return [self.bind(node) for node in nodes]

    def condition(self, node: exp.Expr, what: str) -> Expr:
        """Return a condition; ``what`` begins the error about a value that is none."""
        value = self.bind(node)
        try:
            return truth(value, self.type_of, what)
        except PlanError as error:
            raise PlanError(self.said(node, str(error))) from None

    def type_of(self, value: Expr) -> pa.DataType:
        """Return the type of an expression."""
        return self.frame.type_of(value)

    def said(self, node: exp.Expr, words: str) -> str:
        """Return a sentence with the place of a node."""
        return sentence(node, words, self.frame.session.text)

    # names and constants ---------------------------------------------------------------------------------------

    def column(self, node: exp.Expr) -> Expr:
        """Return a column, a field of one, or the expression that has the name in the list of SELECT."""
        parts = _parts(node)
        found = self.frame.column(parts)
        if found is None and len(parts) == 1:
            aliased = self.alias(parts[0].name)
            if aliased is not None:
                return aliased
        if found is None:
            raise self.frame.unknown(parts)
        value, fields = found
        for field in fields:
            value = self._field(value, field.name, node)
        return value

    def alias(self, name: str) -> Expr | None:
        """Return the expression that has a name in the list of SELECT, None where there is none."""
        lower, frame = name.lower(), self.frame
        if lower not in frame.aliases or lower in frame._resolving:
            return None
        frame._resolving.append(lower)
        try:
            return self.bind(frame.aliases[lower])
        finally:
            frame._resolving.remove(lower)

    def _field(self, value: Expr, name: str, node: exp.Expr) -> Expr:
        data_type = self.type_of(value)
        if not pa.types.is_struct(data_type):
            raise PlanError(self.said(node, f"no field {name}: the value is {shown_type(data_type)}, no struct"))
        names = [field.name for field in data_type]
        found = [one for one in names if one.lower() == name.lower()]
        if not found:
            raise PlanError(self.said(node, f"no field {name} (there are {', '.join(names)})"))
        return value.field(name if name in found else found[0])

    def _literal(self, node: exp.Literal) -> Expr:
        if node.is_string:
            return lit(node.this)
        found = _number(str(node.this))
        if isinstance(found, float) and math.isinf(found):
            raise PlanError(self.said(node, f"{node.this} is more than a DOUBLE holds"))
        return lit(found)

    def _parameter(self, node: exp.Expr) -> Expr:
        if "value" in node.meta:
            known: Expr = node.meta["value"]
            return known
        value = self.frame.session.parameters[node.name]
        try:
            return lit(list(value) if isinstance(value, range) else value)
        except SchemaError as error:
            raise PlanError(self.said(node, f"the parameter {node.name}: {error}")) from None

    # values ----------------------------------------------------------------------------------------------------

    def _calculated(self, node: exp.Binary) -> Expr:
        sign = _ARITHMETIC[type(node)]
        left, right = node.this, node.expression
        if sign in "+-":
            for one, other in ((left, right), (right, left)):
                if is_interval(self, other) and (sign == "+" or other is right):
                    moved = interval_moved(self, one, other, is_back=sign == "-")
                    if moved is not None:
                        return moved
        return calculated(sign, self.bind(left), self.bind(right), self.type_of)

    def _bits(self, node: exp.Binary) -> Expr:
        return bits(_BITS[type(node)], self.bind(node.this), self.bind(node.expression), self.type_of)

    def _negative(self, node: exp.Neg) -> Expr:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return lit(_number(f"-{inner.this}"))
        value = self.bind(inner)
        return lit(None, pa.int64()) if pa.types.is_null(self.type_of(value)) else -value

    def _texts(self, node: exp.Expr) -> Expr:
        parts = list(node.flatten()) if isinstance(node, exp.DPipe) else node.expressions
        return reduce(lambda left, right: joined_texts(left, right, self.type_of), self.all(parts))

    def _cast(self, node: exp.Cast) -> Expr:
        wanted = arrow_type(node.args["to"])
        if pa.types.is_interval(wanted) and isinstance(node.this, exp.Literal):
            return interval_of(node.this.name, None, self.said(node, ""))
        value, tried = self.bind(node.this), isinstance(node, exp.TryCast)
        source = self.type_of(value)
        if not is_text(source) or not is_constant(value) or is_null(value):
            found = cast(value, source, wanted, tried)
            self._check_cast(found, source, wanted)
            return found
        try:
            return lit(text_as(scalar_of(value).as_py(), wanted))
        except PlanError as error:
            if tried:
                return lit(None, wanted)
            raise PlanError(self.said(node.this, str(error))) from None

    def _check_cast(self, found: Expr, source: pa.DataType, wanted: pa.DataType) -> None:
        """Raise PlanError for a type of which no value is one of the other."""
        try:
            self.type_of(found)
        except SchemaError:
            raise PlanError(f"{shown_type(source)} cannot be cast to {shown_type(wanted)}") from None

    def _case(self, node: exp.Case) -> Expr:
        of = node.this
        tested = None if of is None else self.bind(of)
        tests, values = [], []
        for one in node.args["ifs"]:
            if tested is None:
                tests.append(self.condition(one.this, "WHEN"))
            else:
                tests.append(compared("=", tested, self.bind(one.this), self.type_of))
            values.append(self.bind(one.args["true"]))
        default = node.args.get("default")
        return chosen_by(tests, [*values, lit(None) if default is None else self.bind(default)], self.type_of)

    def _if(self, node: exp.If) -> Expr:
        other = node.args.get("false")
        values = [self.bind(node.args["true"]), lit(None) if other is None else self.bind(other)]
        return chosen_by([self.condition(node.this, "IF")], values, self.type_of)

    def _interval(self, node: exp.Interval) -> Expr:
        unit, text = node.args.get("unit"), text_of_interval(self, node)
        if text is None:
            said = self.said(node, "an interval of a column that is not added to a date or a timestamp")
            raise NotYetSupportedError(said)
        return interval_of(text, None if unit is None else unit.name, self.said(node, ""))

    def _at_zone(self, node: exp.AtTimeZone) -> Expr:
        value = self.bind(node.this)
        zone = self.bind(node.args["zone"])
        if not is_constant(zone):
            raise NotYetSupportedError(self.said(node, "the zone of AT TIME ZONE that is no constant, in SQL"))
        return at_zone(value, self.type_of(value), str(scalar_of(zone).as_py()))

    # lists and structs -----------------------------------------------------------------------------------------

    def _array(self, node: exp.Array) -> Expr:
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Comprehension):
            return comprehension(self, node.expressions[0])
        values = fitted(self.all(node.expressions), self.type_of)
        return array(*values) if values else lit(arrow_scalar([], pa.list_(pa.null())))

    def _struct(self, node: exp.Expr) -> Expr:
        fields: dict[str, Expr] = {}
        for number, one in enumerate(node.expressions):
            is_named = isinstance(one, exp.PropertyEQ)
            name = one.this.name if is_named else f"c{number}"
            if name.lower() in {known.lower() for known in fields}:
                raise PlanError(self.said(one, f"the field {name} is there twice"))
            fields[name] = self.bind(one.expression if is_named else one)
        return struct(**fields)

    def _tuple(self, node: exp.Tuple) -> Expr:
        return struct(**{f"c{number}": one for number, one in enumerate(self.all(node.expressions))})

    def _bracket(self, node: exp.Bracket) -> Expr:
        value, (place,) = self.bind(node.this), node.expressions
        data_type = self.type_of(value)
        if isinstance(place, exp.Slice):
            begin, end = place.this, place.expression
            bounds = [lit(1) if begin is None else self.bind(begin), lit(-1) if end is None else self.bind(end)]
            return called(self, "list_slice", [value, *bounds])
        if pa.types.is_struct(data_type):
            return self._field(value, place.name, node)
        if pa.types.is_map(data_type):
            return value.map.get(self.bind(place))
        if not is_list(data_type):
            raise PlanError(
                self.said(node, f"{shown_type(data_type)}[...] is not defined; lists, structs and maps have parts")
            )
        return LIST_FUNCTIONS["array_element"]([value, self.bind(place)])

    def _dot(self, node: exp.Dot) -> Expr:
        return self._field(self.bind(node.this), node.expression.name, node)

    # functions with a syntax of their own ------------------------------------------------------------------------

    def _call(self, node: exp.Anonymous) -> Expr:
        name = str(node.name).lower()
        if is_aggregate(node):
            raise PlanError(self.said(node, _no_aggregate(self.frame, name)))
        if name in windows.NAMES:
            raise PlanError(self.said(node, f"{name}() needs OVER (ORDER BY ...)"))
        given = node.expressions
        if name == "unnest":
            said = "unnest() in WHERE, GROUP BY or ORDER BY; write it in a query of FROM"
            raise NotYetSupportedError(self.said(node, said))
        if name == "struct_pack":
            return self._struct(node)
        if name in ("struct_insert", "struct_update"):
            return struct_with(self, node)
        if name == "array" and any(isinstance(one.unnest(), exp.Query) for one in given):
            said = "ARRAY(SELECT ...); write (SELECT list(x) FROM (SELECT ...) AS q (x))"
            raise NotYetSupportedError(self.said(node, said))
        if any(isinstance(one, exp.Lambda) for one in given):
            if name in LAMBDA_NAMES:
                return lambda_call(self, node)
            # x -> 'a' among arguments of other functions is the operator of JSON
            given = [as_json(one) for one in given]
        if name in OF_UNITS and len(given) == 3 and isinstance(given[0], exp.Column | exp.Var):
            given = [exp.Literal.string(given[0].name), *given[1:]]
        if name not in self.frame.session.functions and name not in LAMBDA_NAMES:
            row_of(name, self.frame.session.functions)  # before its arguments, which may be wrong for another reason
        return called(self, name, self.all(given))

    def _extract(self, node: exp.Extract) -> Expr:
        return called(self, "date_part", [lit(node.name.lower()), self.bind(node.expression)])

    def _substring(self, node: exp.Substring) -> Expr:
        start, length = node.args.get("start"), node.args.get("length")
        if start is None and length is None:
            raise PlanError(self.said(node, "substring needs a start, as in substring(s, 1, 2)"))
        given = [node.this, start or exp.Literal.number(1), *([length] if length is not None else [])]
        return called(self, "substring", self.all(given))

    def _trim(self, node: exp.Trim) -> Expr:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "btrim")
        given = [node.this, *([node.expression] if node.args.get("expression") is not None else [])]
        return called(self, name, self.all(given))

    def _position(self, node: exp.StrPosition) -> Expr:
        return called(self, "strpos", self.all([node.this, node.args["substr"]]))

    def _overlay(self, node: exp.Overlay) -> Expr:
        text, new, start = node.this, node.expression, node.args["from_"]
        count = node.args.get("for_")
        given = self.all([text, new, start])
        width = called(self, "length", [given[1]]) if count is None else self.bind(count)
        before = called(self, "substring", [given[0], lit(1), computed(given[2] - 1)])
        return before + given[1] + called(self, "substring", [given[0], computed(given[2] + width)])

    def _of_sign(self, node: exp.Unary | exp.Binary) -> Expr:
        sides = (node.this, node.args.get("expression"))
        return called(self, _SIGNS[type(node)], self.all([one for one in sides if one is not None]))

    def _not_there(self, node: exp.Expr) -> Expr:
        raise PlanError(self.said(node, _NOT_THERE[type(node)]))

    def _ungrouped(self, node: exp.Expr) -> Expr:
        inner = node.this
        name = str(inner.name).lower()
        if is_aggregate(node):
            raise PlanError(self.said(node, _no_aggregate(self.frame, name)))
        row_of(name, self.frame.session.functions)
        raise NotYetSupportedError(self.said(node, f"{node.key.upper()} of {name}()"))


_NESTED: Final = "an aggregate of an aggregate; write the inner one in a query of FROM"


def _no_aggregate(frame: Frame, name: str) -> str:
    if frame.place:
        return f"an aggregate in {frame.place}; write it in HAVING" if frame.place == "WHERE" else _NESTED
    return f"the aggregate {name}() in this place"


def _parts(node: exp.Expr) -> list[exp.Identifier]:
    """Return the names that dots join."""
    if isinstance(node, exp.Identifier):
        return [node]
    return [part for part in (node.args.get(one) for one in ("catalog", "db", "table", "this")) if part is not None]


def _number(text: str) -> int | float | Decimal | pa.Scalar:
    if "e" in text.lower():
        return float(text)
    if "." in text:
        return Decimal(text)
    whole = int(text)
    return whole if -(2**63) <= whole < 2**64 else Decimal(whole)


_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _unescaped(text: str) -> str:
    r"""Return a text that is written with backslashes: e'a\\nb'."""
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text, flags=re.DOTALL)


#: functions of the values beside their sign
_SIGNS: Final[dict[type[exp.Expr], str]] = {
    exp.Pow: "power",
    exp.BitwiseNot: "bit_not",
    exp.SimilarTo: "regexp_full_match",
}
_MOMENTS: Final[dict[type[exp.Expr], str]] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "now",
    exp.CurrentDatetime: "now",
    exp.Localtimestamp: "now",
    exp.CurrentTime: "current_time",
}
_NOT_THERE: Final[dict[type[exp.Expr], str]] = {
    exp.Collate: "COLLATE is not there; texts compare by bytes, write lower(s)",
    exp.ArrayOverlaps: "&& is not there; write AND, or list_has_any(a, b) of lists",
    exp.Glob: "GLOB is not there; write LIKE or regexp_full_match(s, 'pattern')",
}
_BINDERS: Final[dict[type[exp.Expr], Callable[[Any, Any], Expr]]] = {
    exp.Column: Expressions.column,
    exp.Identifier: Expressions.column,
    exp.Alias: lambda self, node: self.bind(node.this),
    exp.Paren: lambda self, node: self.bind(node.this),
    exp.Literal: Expressions._literal,
    exp.RawString: lambda _self, node: lit(str(node.this)),
    exp.ByteString: lambda _self, node: lit(_unescaped(str(node.this))),
    exp.National: lambda _self, node: lit(str(node.this)),
    exp.Boolean: lambda _self, node: lit(bool(node.this)),
    exp.Null: lambda _self, _node: lit(None),
    exp.Placeholder: Expressions._parameter,
    exp.Parameter: Expressions._parameter,
    exp.And: conditions.connected,
    exp.Or: conditions.connected,
    exp.Not: conditions.negated,
    **dict.fromkeys(conditions.COMPARISONS, conditions.comparison),
    exp.Is: conditions.is_test,
    exp.Between: conditions.between,
    exp.In: conditions.in_list,
    exp.Like: conditions.like,
    exp.ILike: conditions.like,
    exp.Escape: conditions.like,
    exp.RegexpLike: conditions.matched,
    exp.RegexpILike: conditions.matched,
    exp.RegexpFullMatch: conditions.matched,
    **dict.fromkeys(_ARITHMETIC, Expressions._calculated),
    **dict.fromkeys(_BITS, Expressions._bits),
    exp.Neg: Expressions._negative,
    exp.DPipe: Expressions._texts,
    exp.Concat: Expressions._texts,
    exp.Cast: Expressions._cast,
    exp.TryCast: Expressions._cast,
    exp.Case: Expressions._case,
    exp.If: Expressions._if,
    exp.Interval: Expressions._interval,
    exp.AtTimeZone: Expressions._at_zone,
    exp.Array: Expressions._array,
    exp.Struct: Expressions._struct,
    exp.Tuple: Expressions._tuple,
    exp.Bracket: Expressions._bracket,
    exp.Dot: Expressions._dot,
    exp.Anonymous: Expressions._call,
    exp.Extract: Expressions._extract,
    exp.Substring: Expressions._substring,
    exp.Trim: Expressions._trim,
    exp.StrPosition: Expressions._position,
    exp.Overlay: Expressions._overlay,
    exp.JSONExtract: json_part,
    exp.JSONExtractScalar: json_part,
    exp.ToMap: map_of,
    exp.Map: map_of,
    **dict.fromkeys(_NOT_THERE, Expressions._not_there),
    exp.Window: windows.window,
    exp.Filter: Expressions._ungrouped,
    exp.WithinGroup: Expressions._ungrouped,
    exp.IgnoreNulls: Expressions._ungrouped,
    exp.RespectNulls: Expressions._ungrouped,
    exp.Subquery: dependent.scalar,
    exp.Select: dependent.scalar,
    exp.Exists: dependent.existence,
    **dict.fromkeys(_SIGNS, Expressions._of_sign),
    **dict.fromkeys(_MOMENTS, lambda self, node: called(self, _MOMENTS[type(node)], [])),
}
