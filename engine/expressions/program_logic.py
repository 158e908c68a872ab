"""Lowering of conditions: comparisons, searches in texts, ranges, small sets, logic with nulls, choices.

    a > b, a >= b          b < a, b <= a
    between(v, a, b)       a <= v and v <= b
    is_in(v, x, y)         v == x or v == y, and ``or null`` where the set holds one: Kleene's logic is SQL's answer
    coalesce(a, b)         a where it is not null, else b
    when/then              from the last branch to the first: the value where the condition is true, else what follows;
                           where values may fail, conditions and values have the rows that reach them as guard

Held by: tests/expressions/test_program_builder.py
"""

from __future__ import annotations

import re
from functools import reduce

import pyarrow as pa

from engine.expressions.binding import Operand, cast_constant
from engine.expressions.program_builder import Lowering, NoStepsError, ProgramBuilder, Register, kind_of
from engine.records.plain_scalars import scalar_of

#: limit of a set's constants that are compared one by one; Arrow has a table for larger sets
_SET_MAX = 8
#: limit of a pattern's parts; a regular expression counts if it has nothing but words and ``.*`` between them
_PARTS_MAX = 16
_PLAIN_WORDS = re.compile(r"[\w \-,;:'\"!#&/<=>@~]+(\.\*[\w \-,;:'\"!#&/<=>@~]+)*")
_NULL = scalar_of(None, pa.bool_())
_FALSE = scalar_of(False)
_TRUE = scalar_of(True)


def _compared(builder: ProgramBuilder, name: str, left: Register, right: Register) -> Register:
    if left.kind == "bits" and name not in ("equal", "not_equal"):
        raise NoStepsError
    return builder.step(name, "bits", (left, right))


def _comparison(name: str, *, is_swapped: bool = False) -> Lowering:
    def lower(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
        assert operand.form is not None
        left, right = (builder.lower(part, guard) for part in operand.form.operands)
        return _compared(builder, name, *((right, left) if is_swapped else (left, right)))

    return lower


def _text_test(name: str) -> Lowering:
    """Return the lowering of a search for a constant text."""

    def lower(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
        assert operand.form is not None
        text, pattern = operand.form.operands
        if kind_of(text.type) != "text" or kind_of(pattern.type) != "text":
            raise NoStepsError
        if operand.form.options.get("regex"):
            return _line_like(builder, text, pattern, guard)
        return builder.step(name, "bits", (builder.lower(text, guard), builder.lower(pattern, guard)))

    return lower


def _line_like(builder: ProgramBuilder, text: Operand, pattern: Operand, guard: Register | None) -> Register:
    """Lower a regular expression of words with ``.*`` between them; a dot is no end of a line, so one line has all."""
    assert pattern.constant is not None
    words: str = pattern.constant.as_py()
    if not pa.types.is_string(text.type) and not pa.types.is_large_string(text.type):
        raise NoStepsError
    if _PLAIN_WORDS.fullmatch(words) is None or words.count(".*") >= _PARTS_MAX:
        raise NoStepsError
    constant = builder.constant(scalar_of("%" + words.replace(".*", "%") + "%", text.type))
    return builder.step("line_like", "bits", (builder.lower(text, guard), constant))


def _lower_like(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
    """Lower LIKE with a pattern that has no other wildcard than %."""
    assert operand.form is not None
    text, pattern = operand.form.operands
    assert pattern.constant is not None
    parts: str = pattern.constant.as_py()
    if kind_of(text.type) != "text" or "_" in parts or "\\" in parts or parts.count("%") >= _PARTS_MAX:
        raise NoStepsError
    return builder.step("like", "bits", (builder.lower(text, guard), builder.lower(pattern, guard)))


def _lower_between(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
    assert operand.form is not None
    value, lower, upper = (builder.lower(part, guard) for part in operand.form.operands)
    above = _compared(builder, "less_equal", lower, value)
    below = _compared(builder, "less_equal", value, upper)
    return builder.step("and", "bits", (above, below))


def _lower_is_in(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
    assert operand.form is not None
    value, *choices = operand.form.operands
    constants = [choice.constant for choice in choices if choice.constant is not None]
    if len(constants) > _SET_MAX or kind_of(value.type) is None:
        raise NoStepsError
    values = builder.lower(value, guard)
    valid = [builder.constant(cast_constant(one, value.type)) for one in constants if one.is_valid]
    found = [_compared(builder, "equal", values, one) for one in valid]
    if len(valid) < len(constants):
        found.append(builder.constant(_NULL))
    if not valid:
        raise NoStepsError
    return reduce(lambda one, other: builder.step("or", "bits", (one, other)), found)


def _logic(name: str) -> Lowering:
    def lower(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
        assert operand.form is not None
        return builder.step(name, "bits", [builder.lower(part, guard) for part in operand.form.operands])

    return lower


def _null_test(name: str) -> Lowering:
    def lower(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
        assert operand.form is not None
        return builder.step(name, "bits", (builder.validity(operand.form.operands[0], guard),))

    return lower


def _lower_coalesce(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
    assert operand.form is not None
    *firsts, result = (builder.lower(part, guard) for part in operand.form.operands)
    for values in reversed(firsts):
        is_valid = builder.step("is_not_null", "bits", (values,))
        result = _chosen(builder, operand, is_valid, values, result)
    return result


def _chosen(
    builder: ProgramBuilder, operand: Operand, condition: Register, value: Register, other: Register
) -> Register:
    kind = kind_of(operand.type)
    if kind is None or kind == "text":
        raise NoStepsError
    return builder.step("choose", kind, (value, other, condition))


def _lower_case(builder: ProgramBuilder, operand: Operand, guard: Register | None) -> Register:
    assert operand.form is not None
    *branches, otherwise = operand.form.operands
    chosen: list[tuple[Register, Register]] = []
    reaching = guard
    for condition, value in zip(branches[::2], branches[1::2], strict=True):
        if pa.types.is_null(condition.type):
            raise NoStepsError
        test = builder.lower(condition, reaching)
        if not operand.can_raise:
            chosen.append((test, builder.lower(value, None)))
            continue
        chosen.append((test, builder.lower(value, _both(builder, reaching, test))))
        is_true = builder.step("choose", "bits", (builder.constant(_TRUE), builder.constant(_FALSE), test))
        reaching = _both(builder, reaching, builder.step("not", "bits", (is_true,)))
    result = builder.lower(otherwise, reaching)
    for test, values in reversed(chosen):
        result = _chosen(builder, operand, test, values, result)
    return result


def _both(builder: ProgramBuilder, guard: Register | None, condition: Register) -> Register:
    return condition if guard is None else builder.step("and", "bits", (guard, condition))


LOGIC_LOWERINGS: dict[str, Lowering] = {
    "equal": _comparison("equal"),
    "not_equal": _comparison("not_equal"),
    "less": _comparison("less"),
    "less_equal": _comparison("less_equal"),
    "greater": _comparison("less", is_swapped=True),
    "greater_equal": _comparison("less_equal", is_swapped=True),
    "str_starts_with": _text_test("starts_with"),
    "str_ends_with": _text_test("ends_with"),
    "str_contains": _text_test("contains"),
    "str_like": _lower_like,
    "between": _lower_between,
    "is_in": _lower_is_in,
    "and": _logic("and"),
    "or": _logic("or"),
    "not": _logic("not"),
    "is_null": _null_test("is_null"),
    "is_not_null": _null_test("is_not_null"),
    "coalesce": _lower_coalesce,
    "fill_null": _lower_coalesce,
    "case": _lower_case,
}
