"""Text files in other encodings than UTF-8: which can be read, and how their bytes become UTF-8.

    checked_encoding("latin-1", ",", '"') -> "iso8859-1"        "" for UTF-8, whose bytes are taken as they are
    to_utf8(data, "iso8859-1") -> bytes                         whole records
    guessed_encoding(data) -> "cp1252"                          what to try, where bytes are no UTF-8

Records, fields and splits are found in the bytes of the file, so delimiter, quote and line ends must be the bytes that
they are in ASCII, and these bytes must mean nothing else: true for the encodings of one byte a character (latin-1,
cp1252, koi8-r), and for those of several whose further bytes are never a delimiter (shift_jis, gbk, big5, euc). UTF-16
and what changes its meaning on the way (iso-2022, utf-7) are refused, with the command that converts a file.

Held by: tests/csv/test_advice.py
"""

from __future__ import annotations

import codecs
from typing import Final

from engine.errors import ConfigurationError, SchemaError

_UTF8: Final = frozenset({"utf-8", "utf-8-sig", "ascii"})
#: escapes in plain ASCII bytes switch what the others mean
_STATEFUL: Final = ("iso2022", "hz", "utf-7")
#: further bytes of a character are never below, digits of gb18030 excepted
_TRAILING_MIN: Final = 0x40
_UTF16_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def checked_encoding(encoding: str | None, delimiter: str, quote: str | None) -> str:
    """Return Python's name of an encoding, "" for UTF-8; ConfigurationError for one whose files cannot be read."""
    if encoding is None:
        return ""
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError):
        raise ConfigurationError(
            f"encoding={encoding!r}: Python knows none of this name; try 'utf-8', 'cp1252' or 'latin-1'"
        ) from None
    if name in _UTF8:
        return ""
    marks = f"0123456789\r\n\t {delimiter}{quote or ''}"
    if name.startswith(_STATEFUL) or not _is_ascii_compatible(name, marks):
        raise ConfigurationError(f"encoding={encoding!r}: records cannot be found in such a file; {_convert(name)}")
    clash = [mark for mark in (delimiter, quote) if mark and (ord(mark) >= _TRAILING_MIN or mark.isdigit())]
    if clash and _has_several_bytes(name):
        raise ConfigurationError(
            f"encoding={encoding!r}: the byte of {clash[0]!r} is a part of other characters too; {_convert(name)}"
        )
    return name


def _is_ascii_compatible(name: str, marks: str) -> bool:
    try:
        return marks.encode("ascii").decode(name) == marks
    except (UnicodeError, LookupError):
        return False


def _has_several_bytes(name: str) -> bool:
    for byte in range(128, 256):
        try:
            bytes([byte]).decode(name)
        except UnicodeDecodeError as error:
            if "incomplete" in error.reason:
                return True
    return False


def _convert(name: str) -> str:
    return f"convert it: iconv -f {name.upper()} -t UTF-8 FILE > NEW"


def to_utf8(data: bytes | memoryview, encoding: str) -> bytes:
    """Return text in UTF-8; UnicodeDecodeError where it is not what it is said to be."""
    plain = bytes(data)
    return plain if plain.isascii() else plain.decode(encoding).encode()


def refuse_utf16(head: bytes, path: str) -> None:
    """Raise SchemaError for a file that begins as UTF-16 does, as spreadsheets write it."""
    if head.startswith(_UTF16_MARKS):
        raise SchemaError(f"read_csv({path!r}): the file is UTF-16, not UTF-8; {_convert('utf-16')}")


def guessed_encoding(data: bytes) -> str:
    """Return the encoding that bytes which are no UTF-8 have most likely: Windows' one of the West, else latin-1."""
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"
