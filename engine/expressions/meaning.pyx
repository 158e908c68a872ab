"""Meaning: expressions over a schema as a key of what is kept of them, such as their type or what they compile to.

    Meaning(expressions, schema)     .may_be_kept: whether it is small, and the same each time

Two are equal when the bytes of their expressions are (1, 1.0 and True are three), and their schemas to the metadata.
Each task asks for each of its expressions, so a look at what is kept needs no Python frame.

Held by: tests/expressions/test_evaluate.py
"""

cimport cython

import msgspec

from engine.graph.function_table import is_deterministic

cdef object encode = msgspec.msgpack.Encoder().encode

cdef enum:
    KEPT_BYTES_MAX = 32 << 10       # largest size of one that is kept, encoded
    KEPT_COLUMNS_MAX = 100
    KNOWN_BYTES_MAX = 4 << 10       # of one of which it is kept whether it is deterministic
    KNOWN_MAX = 512

#: flags by the bytes of expressions: they are deterministic
cdef dict known = {}


@cython.final
cdef class Meaning:
    """The key of compiled expressions: the expressions and their schema."""

    cdef readonly object expressions, schema
    cdef bytes _encoded

    def __init__(self, expressions not None, schema not None):
        self.expressions, self.schema = expressions, schema
        try:
            self._encoded = encode(expressions)
        except (UnicodeEncodeError, OverflowError):  # its compilation reports what is wrong
            self._encoded = b""

    @property
    def encoded_bytes(self):
        """The size of the expressions, encoded."""
        return len(self._encoded)

    @property
    def may_be_kept(self):
        """Whether the program may be kept: the expressions are few, and deterministic."""
        cdef bint is_small = 0 < len(self._encoded) <= KEPT_BYTES_MAX and len(self.schema) <= KEPT_COLUMNS_MAX
        return is_small and self._is_deterministic()

    cdef bint _is_deterministic(self) except -1:
        found = known.get(self._encoded)
        if found is None:
            found = all(map(is_deterministic, self.expressions))
            if len(self._encoded) <= KNOWN_BYTES_MAX:
                if len(known) >= KNOWN_MAX:
                    known.clear()
                known[self._encoded] = found
        return found

    def __hash__(self):
        return hash(self._encoded)

    def __eq__(self, other):
        cdef Meaning one
        if not isinstance(other, Meaning):
            return False
        one = <Meaning>other
        return self._encoded == one._encoded and bool(self.schema.equals(one.schema, check_metadata=True))
