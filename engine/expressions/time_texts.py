"""Dates and timestamps from texts by a format: ``.str.to_date("%d.%m.%Y")``.

Arrow's strptime takes Feb 31 for Mar 3. So what it finds is written by the same format again, and is what the text says
only where both are equal, leading zeros and upper or lower case apart:

    '31.2.2023' ──strptime──► 2023-03-03 ──strftime──► '03.03.2023' ≠ '31.2.2023' ──► no date
    '1.2.2023'  ──strptime──► 2023-02-01 ──strftime──► '01.02.2023' = '1.2.2023' but for zeros

``%f`` at the end are one to six digits of a fraction. ``%z`` at the end is an offset, ``+0130``, ``+01:30`` or ``Z``,
which is taken off together with spaces before it, and then the moment is one of UTC.

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
_OFFSET: Final = "%z"
_OFFSET_PATTERN: Final = r"(?P<sign>[+-])(?P<hours>[01][0-9]|2[0-3]):?(?P<minutes>[0-5][0-9])$"
#: within a format; a zone cannot be written again without the zone itself
_REFUSED: Final = ("%z", "%Z", "%s", "%c", "%x", "%X", "%+", "%E", "%O")


def parsing(kind: str) -> Callable[[Sequence[Operand], Options], Binding]:
    """Return the binder of the ``date`` or the ``timestamp`` that a text is; options ``format`` and ``strict``."""
    target = pa.date32() if kind == "date" else pa.timestamp("us")

    def bind(operands: Sequence[Operand], options: Options) -> Binding:
        written, is_strict = str(options.get("format")), options.get("strict") is not False
        has_offset = kind == "timestamp" and written.endswith(_OFFSET)
        local = written.removesuffix(_OFFSET).rstrip() if has_offset else written
        has_fraction = local.endswith(_FRACTION)
        whole = local.removesuffix(_FRACTION)
        refused = next((each for each in _REFUSED if each in whole), _FRACTION if _FRACTION in whole else None)
        if refused is not None or "%" not in whole:
            raise NoMatchError(_advice(refused, kind) if refused else "no format")
        data_type = text(operands[0].type)

        def parsed(texts: pa.Array) -> pa.Array:
            offsets, rest = _without_offset(texts) if has_offset else (None, texts)
            found, is_right = _parsed(rest, whole, has_fraction=has_fraction)
            if offsets is not None:
                is_right = pc.and_(is_right, pc.is_valid(offsets))
            if is_strict:
                _check_all(texts, is_right, written)
            found = pc.cast(pc.if_else(is_right, found, scalar_of(None, found.type)), target)
            if offsets is None:
                return found
            return pc.subtract(found.view(pa.int64()), offsets).view(pa.timestamp("us", "UTC"))

        parsed(pa.nulls(1, data_type))
        return Binding(of_array(parsed), (data_type,), can_raise=True)

    return bind


def _advice(refused: str, kind: str) -> str:
    if refused != _OFFSET:
        return f"a format with {refused}"
    return "a format with %z anywhere but at its end" if kind == "timestamp" else "a date with %z: use to_timestamp()"


def _without_offset(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the microseconds by which texts that end with an offset are ahead of UTC, and the texts without it."""
    parts = pc.extract_regex(pc.replace_substring_regex(texts, pattern="Z$", replacement="+0000"), _OFFSET_PATTERN)
    hours, minutes = (pc.cast(pc.struct_field(parts, [name]), pa.int64()) for name in ("hours", "minutes"))
    size = pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60_000_000)
    ahead = pc.if_else(pc.equal(pc.struct_field(parts, ["sign"]), "-"), pc.negate(size), size)
    return ahead, pc.replace_substring_regex(texts, pattern=rf"\s*(?:Z|{_OFFSET_PATTERN})$", replacement="")


def _parsed(texts: pa.Array, whole: str, *, has_fraction: bool) -> tuple[pa.Array, pa.Array]:
    """Return the moments of texts by a format, with a fraction behind it or not; and which of them are right."""
    main = pc.replace_substring_regex(texts, pattern="[0-9]{1,6}$", replacement="") if has_fraction else texts
    moments = pc.strptime(main, format=whole, unit="s", error_is_null=True)
    again = pc.strftime(moments, format=whole)
    is_right = pc.equal(_comparable(again), _comparable(pc.cast(main, pa.string())))
    if not has_fraction:
        return moments, is_right
    is_right = pc.and_kleene(is_right, pc.match_substring_regex(texts, pattern="[0-9]{1,6}$"))
    digits = pc.struct_field(pc.extract_regex(texts, pattern="(?P<f>[0-9]{1,6})$"), indices=["f"])
    micros = pc.cast(pc.utf8_rpad(digits, width=6, padding="0"), pa.int64())
    found = pc.cast(pc.if_else(is_right, moments, scalar_of(None, moments.type)), pa.timestamp("us"))
    return pc.add(found.view(pa.int64()), pc.if_else(pc.is_valid(found), micros, 0)).view(found.type), is_right


def _comparable(texts: pa.Array) -> pa.Array:
    """Return texts in lower case, without zeros that lead a number."""
    return pc.utf8_lower(pc.replace_substring_regex(texts, pattern=r"\b0+([0-9])", replacement=r"\1"))


def _check_all(texts: pa.Array, is_right: pa.Array, written: str) -> None:
    wrong = pc.and_(pc.is_valid(texts), pc.invert(pc.fill_null(is_right, False)))
    if pc.any(wrong).as_py():
        shown = pc.filter(texts, wrong)[0].as_py()
        raise pa.ArrowInvalid(f"{shown[:80]!r} is not of the format {written!r}")
