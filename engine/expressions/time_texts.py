"""Dates and timestamps from texts by a format: ``.str.to_date("%d.%m.%Y")``.

Arrow's strptime takes Feb 31 for Mar 3. So what it finds is written by the same format again, and is what the text says
only where both are equal, leading zeros and upper or lower case apart:

    '31.2.2023' ──strptime──► 2023-03-03 ──strftime──► '03.03.2023' ≠ '31.2.2023' ──► no date
    '1.2.2023'  ──strptime──► 2023-02-01 ──strftime──► '01.02.2023' = '1.2.2023' but for zeros

``%f`` at the end are one to six digits of a fraction.

Held by: tests/expressions/test_time_texts.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.argument_kinds import text
from engine.expressions.binding import Binding, NoMatchError, Operand, Options
from engine.expressions.number_functions import of_array
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_FRACTION: Final = "%f"
#: a zone cannot be written again without the zone itself
_REFUSED: Final = ("%z", "%Z", "%s", "%c", "%x", "%X", "%+", "%E", "%O")


def parsing(kind: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of the ``date`` or the ``timestamp`` that a text is; options ``format`` and ``strict``."""
    target = pa.date32() if kind == "date" else pa.timestamp("us")

    def bind(operands: Sequence[Operand], options: Options) -> Binding:
        written, is_strict = str(options.get("format")), options.get("strict") is not False
        has_fraction = written.endswith(_FRACTION)
        whole = written.removesuffix(_FRACTION)
        refused = next((each for each in _REFUSED if each in whole), _FRACTION if _FRACTION in whole else None)
        if refused is not None or "%" not in whole:
            raise NoMatchError(f"a format with {refused}; cast() reads ISO 8601 with zones" if refused else "no format")
        data_type = text(operands[0].type)

        def parsed(texts: pa.Array) -> pa.Array:
            main = pc.replace_substring_regex(texts, pattern="[0-9]{1,6}$", replacement="") if has_fraction else texts
            moments = pc.strptime(main, format=whole, unit="s", error_is_null=True)
            again = pc.strftime(moments, format=whole)
            is_right = pc.equal(_comparable(again), _comparable(pc.cast(main, pa.string())))
            if has_fraction:
                is_right = pc.and_kleene(is_right, pc.match_substring_regex(texts, pattern="[0-9]{1,6}$"))
            if is_strict:
                _check_all(texts, is_right, written)
            found = pc.if_else(is_right, moments, scalar_of(None, moments.type))
            found = pc.cast(found, target)
            if not has_fraction or kind == "date":
                return found
            digits = pc.struct_field(pc.extract_regex(texts, pattern="(?P<f>[0-9]{1,6})$"), indices=["f"])
            micros = pc.cast(pc.utf8_rpad(digits, width=6, padding="0"), pa.int64())
            return pc.add(found.view(pa.int64()), pc.if_else(pc.is_valid(found), micros, 0)).view(target)

        parsed(pa.nulls(1, data_type))
        return Binding(of_array(parsed), (data_type,), can_raise=True)

    return bind


def _comparable(texts: pa.Array) -> pa.Array:
    """Return texts in lower case, without zeros that lead a number."""
    return pc.utf8_lower(pc.replace_substring_regex(texts, pattern=r"\b0+([0-9])", replacement=r"\1"))


def _check_all(texts: pa.Array, is_right: pa.Array, written: str) -> None:
    wrong = pc.and_(pc.is_valid(texts), pc.invert(pc.fill_null(is_right, False)))
    if pc.any(wrong).as_py():
        shown = pc.filter(texts, wrong)[0].as_py()
        raise pa.ArrowInvalid(f"{shown[:80]!r} is not of the format {written!r}")
