"""Text to lines without a Python object for each: a block of bytes becomes an Arrow array of strings.

    lines_of(block)      a CR LF LF b  ─►  "a", "", "b"

A line ends with LF or CR LF, which are not part of it; a CR alone is. After the last line end nothing more begins:
text that ends with one has no empty line behind it.

Held by: tests/connectors/test_text.py
"""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa

from engine.records.arrow_functions import pc

#: the column of a text source
LINE: Final = "line"


def lines_of(block: bytes) -> pa.Array:
    """Return the lines of a block that begins with one, as strings.

    Raises: pa.ArrowInvalid when the block is not UTF-8.
    """
    offsets = pa.py_buffer(struct.pack("=ii", 0, len(block)))
    whole = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(block)])
    whole.validate(full=True)
    if b"\r\n" in block:
        lines = pc.split_pattern_regex(whole, "\r?\n").flatten()
    else:
        lines = pc.split_pattern(whole, "\n").flatten()
    return lines[:-1] if block.endswith(b"\n") or not block else lines
