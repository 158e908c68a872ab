"""Numbers as people write them: decimal commas, thousands in groups; and what is no number, whatever Arrow makes of it.

    numbers = WrittenNumbers(decimal, thousands)          ConfigurationError for marks that cannot be told apart
    numbers.decimal_point                                 for Arrow
    numbers.are_texts(type)                               whether a column is read as text, for ``of_texts``
    numbers.of_texts(array, type) -> array                pa.ArrowInvalid where one is no number
    numbers.inferred(array) -> type                       int64 or double, None where they are no numbers

    thousands="."  decimal=","       1.234.567,5  ->  1234567.5        1.23  ->  no number: groups have three digits

A mark of thousands stands between groups of three digits or nowhere, so that a fraction is not read as a number that is
a thousand times as large.

``has_hexadecimal(data)``: Arrow takes 0x10 for an integer, 16; no other engine does, and in a file it is a hash or an
address. Columns of integers are looked at again where something of that kind is in a block.

Held by: tests/csv/test_written_numbers.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from engine.errors import ConfigurationError
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_HEXADECIMAL: Final = re.compile(rb"0[xX]")
_IS_HEXADECIMAL: Final = r"^\s*[+-]?0[xX]"
_POINT: Final = "."
#: type that has the values of all decimals of negative scale
WHOLE: Final = pa.decimal256(76, 0)
#: numbers of which Arrow's reader makes no columns
_NOT_ARROWS: Final = frozenset({pa.float16()})
_DECIMALS_NOT_ARROWS: Final = (pa.Decimal32Type, pa.Decimal64Type, pa.Decimal256Type)


def has_negative_scale(data_type: pa.DataType) -> bool:
    """Return whether a type is a decimal that stores hundreds or thousands, not units."""
    return bool(pa.types.is_decimal(data_type) and data_type.scale < 0)


def has_hexadecimal(data: bytes | memoryview) -> bool:
    """Whether there is something in a block that may be a hexadecimal number."""
    return _HEXADECIMAL.search(data) is not None


def check_no_hexadecimal(columns: Iterable[pa.ChunkedArray]) -> None:
    """Raise pa.ArrowInvalid where a text is a hexadecimal number."""
    for texts in columns:
        if pc.any(pc.match_substring_regex(texts, pattern=_IS_HEXADECIMAL)).as_py():
            raise pa.ArrowInvalid("a hexadecimal number")


class WrittenNumbers:
    """The formats of numbers in a file; see the module's text."""

    def __init__(self, decimal: str = _POINT, thousands: str | None = None) -> None:
        for name, mark in (("decimal", decimal), ("thousands", thousands or "'")):
            if not isinstance(mark, str) or len(mark) != 1 or mark.isalnum() or mark in '+-"\n\r\0':
                raise ConfigurationError(f"{name}={mark!r}: must be one character, such as ',' or '.'")
        if decimal == thousands:
            raise ConfigurationError(f"decimal and thousands are both {decimal!r}")
        self.decimal_point = decimal
        self._thousands = thousands or ""
        mark, point = re.escape(self._thousands), re.escape(decimal)
        groups = rf"([0-9]*|[1-9][0-9]{{0,2}}({mark}[0-9]{{3}})+)" if thousands else "[0-9]*"
        self._whole = rf"^\s*[+-]?{groups}\s*$"
        self._number = rf"^\s*[+-]?{groups}({point}[0-9]*)?([eE][+-]?[0-9]+)?\s*$"

    def are_texts(self, data_type: pa.DataType) -> bool:
        """Whether a column of a type is read as text."""
        if data_type in _NOT_ARROWS or isinstance(data_type, _DECIMALS_NOT_ARROWS) or has_negative_scale(data_type):
            return True
        if not self._thousands:
            return False
        is_number = pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type)
        return bool(is_number)

    def of_texts(self, texts: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
        """Return texts as numbers of a type; pa.ArrowInvalid where one is none."""
        if not _all(pc.match_substring_regex(texts, pattern=self._number)):
            raise pa.ArrowInvalid(f"a text that is not {data_type}")
        plain = self._plain(texts)
        # Arrow's readers want room for the zeros that a negative scale does not store.
        return pc.cast(pc.cast(plain, WHOLE) if has_negative_scale(data_type) else plain, data_type)

    def inferred(self, texts: pa.ChunkedArray) -> pa.DataType | None:
        """Return the type of the numbers that texts are; None: they are none, or have no mark of thousands."""
        if not self._thousands or not pc.any(pc.match_substring(texts, pattern=self._thousands)).as_py():
            return None
        for pattern, data_type in ((self._whole, pa.int64()), (self._number, pa.float64())):
            if _all(pc.match_substring_regex(texts, pattern=pattern)):
                try:
                    pc.cast(self._plain(texts), data_type)
                except pa.ArrowInvalid:
                    continue
                return data_type
        return None

    def _plain(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return numbers as Arrow reads them."""
        texts = pc.ascii_ltrim(pc.ascii_trim_whitespace(texts), characters="+")
        texts = pc.replace_substring(texts, pattern=self._thousands, replacement="") if self._thousands else texts
        return pc.replace_substring(texts, pattern=self.decimal_point, replacement=_POINT)


def _all(flags: pa.ChunkedArray) -> bool:
    """Whether flags are true, or null."""
    return bool(pc.all(pc.fill_null(flags, scalar_of(True))).as_py() is not False)
