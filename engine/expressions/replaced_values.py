"""Values for others: ``replace({1: "a", 2: "b"})``, by a hash table of the keys.

    values ──► place among the keys ──► the new value there; else the value itself, a default, or an error

Null may be a key. NaN is one key, and so are both zeros.

Held by: tests/expressions/test_replaced_values.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.expressions.argument_kinds import common
from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, as_array
from engine.expressions.common_type import common_type
from engine.expressions.nested_functions import plain_floats
from engine.records.arrow_functions import pc


def _constants(operand: Operand, what: str) -> pa.Array:
    if operand.constant is None or not operand.constant.is_valid or not pa.types.is_list(operand.type):
        raise NoMatchError(f"the {what} of replace are constants")
    return operand.constant.values


def bind_replace(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind a value replaced by the one at its place among constants; option ``strict``: others than keys fail."""
    keys, values = (_constants(one, what) for one, what in zip(operands[1:3], ("keys", "values"), strict=True))
    key_type = common_type(operands[0].type, keys.type)
    if key_type is None:
        raise NoMatchError(f"the keys are {keys.type}: they and the values have no common type")
    is_strict, default_type = bool(options.get("strict")), [one.type for one in operands[3:]]
    kept = [*operands[3:], *([] if is_strict or default_type else operands[:1])]
    if kept and common_type(values.type, kept[0].type) is None:
        raise NoMatchError(
            f"the new values are {values.type}, and what they stand beside is {kept[0].type}; make them alike, or "
            "write replace_strict(), whose result has the type of the new values"
        )
    made = common([Operand(values.type, operands[0].evaluate), *kept])
    known, new = plain_floats(pc.cast(keys, key_type)), pc.cast(values, made)

    def replaced(tested: Datum, _keys: Datum, _values: Datum, *default: Datum) -> Datum:
        arrays = [one for one in (tested, *default) if not isinstance(one, pa.Scalar)]
        count = len(arrays[0]) if arrays else 1
        column = as_array(tested, count)
        places = pc.index_in(plain_floats(pc.cast(column, key_type)), value_set=known)
        found = pc.take(new, places)
        if is_strict:
            lost = pc.and_(pc.is_null(places), pc.is_valid(column))
            if pc.any(lost).as_py():
                raise pa.ArrowInvalid("replace_strict() has no such key, and no default")
        else:
            other = as_array(default[0], count) if default else pc.cast(column, made, safe=False)
            found = pc.if_else(pc.is_valid(places), found, other)
        return found if arrays else found[0]

    return Binding(replaced, (None, None, None, *(made for _ in operands[3:])), can_raise=is_strict)
