"""Text files in other encodings than UTF-8, and how their bytes become UTF-8.

    checked_encoding("latin-1", ",", '"') -> Encoding("iso8859-1", False)  "" for UTF-8, which is taken as it is
    checked_encoding("utf-16", ",", '"')  -> Encoding("utf-16", True)      True: decoded as a whole, before all else
    marked_encoding(paths, codec) -> "utf-16"                              how all files begin says it, "": it does not
    to_utf8(data, "iso8859-1") -> bytes                                    whole records
    guessed_encoding(data) -> "cp1252"                                     what to try, where bytes are no UTF-8

Records, fields and splits are found in the bytes of the file where delimiter, quote and line ends are the bytes that
they are in ASCII, and these bytes mean nothing else: true for the encodings of one byte a character (latin-1, cp1252,
koi8-r), and for those of several whose further bytes are never a delimiter (shift_jis, gbk, big5, euc). A file in
another one, such as UTF-16 or iso-2022, is decoded from its begin on (``files.compression``), by one subtask.

Held by: tests/csv/test_advice.py
Held by: tests/integration/test_csv_headers.py
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.errors import ConfigurationError, PlanError
from engine.files.compression import codec_of, open_text

_UTF8: Final = frozenset({"utf-8", "utf-8-sig", "ascii"})
#: escapes in plain ASCII bytes switch what the others mean
_STATEFUL: Final = ("iso2022", "hz", "utf-7")
#: lowest value of a character's further bytes, except digits of gb18030
_TRAILING_MIN: Final = 0x40
#: byte order marks, longer ones first: that of UTF-32 begins with that of UTF-16
_MARKED: Final = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_MARK_BYTES: Final = 4


class Encoding(NamedTuple):
    """Python's name of an encoding, and whether a file is decoded as a whole."""

    name: str
    is_stream: bool


def checked_encoding(encoding: str | None, delimiter: str, quote: str | None) -> Encoding:
    """Return an encoding, of name "" for UTF-8; ConfigurationError for one that Python does not know."""
    if encoding is None:
        return Encoding("", False)
    try:
        info = codecs.lookup(encoding)
        is_text = info._is_text_encoding  # of base64 and the like it is False
    except (LookupError, TypeError):
        is_text = False
    if not is_text:
        raise ConfigurationError(
            f"encoding={encoding!r}: Python knows none of this name; try 'utf-8', 'cp1252' or 'latin-1'"
        )
    name = info.name
    if name in _UTF8:
        return Encoding("", False)
    marks = f"0123456789\r\n\t {delimiter}{quote or ''}"
    is_plain = _is_ascii_compatible(name, marks) and not name.startswith(_STATEFUL)
    clash = [mark for mark in (delimiter, quote) if mark and (ord(mark) >= _TRAILING_MIN or mark.isdigit())]
    return Encoding(name, not is_plain or bool(clash and _has_several_bytes(name)))


def marked_encoding(paths: Sequence[str], codec: str, reader: str = "read_csv") -> str:
    """Return the encoding that all files begin with the mark of, "" for none; PlanError where some have another one.

    Of compressed files one is looked at.
    """
    marks: dict[str, str] = {}
    for path in paths:
        stored = codec_of(path, codec)
        if stored and marks:
            continue
        with open_text(path, stored) as file:
            begin = file.read(_MARK_BYTES) or b""
        if begin:
            marks.setdefault(next((name for mark, name in _MARKED.items() if begin.startswith(mark)), ""), path)
    if len(marks) > 1:
        (name, path), (other, other_path) = list(marks.items())[:2]
        raise PlanError(
            f"{reader}: {path} is {name or 'not ' + other}, {other_path} is {other or 'not ' + name}; read them as two"
            " sources, or convert one: iconv -f UTF-16 -t UTF-8 FILE > NEW"
        )
    return next(iter(marks), "")


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


def to_utf8(data: bytes | memoryview, encoding: str) -> bytes:
    """Return text in UTF-8; UnicodeDecodeError where it is not what it is said to be."""
    plain = bytes(data)
    return plain if plain.isascii() else plain.decode(encoding).encode()


def guessed_encoding(data: bytes) -> str:
    """Return the encoding that bytes which are no UTF-8 have most likely: Windows' one of the West, else latin-1."""
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"
