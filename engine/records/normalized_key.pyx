"""Normalized key: 64 bits of the sort keys, compared unsigned, as far as they reach.

    bit 63                                                                                              bit 0
    +--------+--------------------------+--------+--------------------------+----
    | marker | ordered value of key 0   | marker | ordered value of key 1   | ...        cut after 64 bits
    +--------+--------------------------+--------+--------------------------+----

* marker: one bit, only for columns that may be null. Nulls first: 0 for null; nulls last: 1 for null. It does not
  turn with descending. A first key of 64 bits has none: null is 0 (nulls last: all ones), and the value that is just
  that becomes the next one. So neighbours such as 6 and 7 stay apart, which a bit less would make one.
* ordered value: numbers as in ``ordered_number`` (8, 16, 32, 64 bits), bool 1 bit, decimals the bits that their
  precision needs, bytes their first bytes, zero-padded. Descending: all bits inverted.
* ``decides``: every key fits whole and none is of variable length. Otherwise equal prefixes say nothing, different
  prefixes always say the right thing. But of a nullable key of 64 bits alone one prefix says nothing: ``ties``.

A marker of one bit, not of Flink's one byte: a nullable int64 behind another key keeps as many bits as can be.

Invariants: relies on the null slots of rows being zero, on columns declared not nullable being so (RowCodec.accept
checks it) and on decimals being within their precision.
Source: normalized keys of Flink's TypeComparator (putNormalizedKey); vectors in the tests.

Held by: tests/records/test_comparator.py
"""

cimport cython

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from engine.records.arrow_batch cimport KIND_BOOL
from engine.records.byte_kernels cimport copy_bytes, load64, prefetch, swap64
from engine.records.comparator cimport read_sort_key
from engine.records.number_types cimport Word
from engine.records.ordered_number cimport (
    ORDER_BYTES,
    ORDER_DECIMAL,
    ORDER_FIXED_BYTES,
    ORDER_NULL,
    ordered_word,
)
from engine.records.outside_values cimport PREFIX_OFFSET, is_outside, known_bytes
from engine.records.row_codec cimport RowCodec, row_is_null

cdef int32_t PREFIX_BITS = 64
cdef int64_t AHEAD = 12


cdef inline uint64_t _placed(const PrefixPart* part, uint64_t value) noexcept nogil:
    """Return the ordered value inverted if need be and shifted to its place."""
    if part.key.descending:
        value ^= (~<uint64_t>0) >> (PREFIX_BITS - part.value_bits)
    return value << part.shift if part.shift >= 0 else value >> -part.shift


cdef void _add_words(Word* tag, const PrefixPart* part, uint8_t** rows, int64_t count,
                     uint64_t* prefixes) noexcept nogil:
    cdef PrefixPart own = part[0]
    cdef int64_t row
    for row in range(count):
        prefixes[row] |= _placed(&own, ordered_word((<const Word*>(rows[row] + own.key.slot))[0], own.key.order))


cdef inline uint64_t _leading_bytes(const uint8_t* bytes, uint64_t size) noexcept nogil:
    """Return the first eight bytes as a big-endian number, zero-padded."""
    cdef uint64_t word = 0
    if size >= 8:
        return swap64(load64(bytes))
    copy_bytes(<uint8_t*>&word, bytes, size)
    return swap64(word)


cdef void _add_bytes(const PrefixPart* part, uint8_t** rows, int64_t count, uint64_t* prefixes) noexcept nogil:
    """Strings and binary: always 64 bits, cut to the room."""
    cdef PrefixPart own = part[0]
    cdef const uint8_t* bytes
    cdef uint64_t value
    cdef int64_t row
    for row in range(count):
        value = load64(rows[row] + own.key.slot)
        bytes = rows[row] + (value & 0xFFFFFFFFU)
        if is_outside(value):
            prefixes[row] |= _placed(&own, _leading_bytes(bytes + PREFIX_OFFSET, known_bytes(bytes)))
        else:
            prefixes[row] |= _placed(&own, _leading_bytes(bytes, value >> 32))


cdef void _add_fixed_bytes(const PrefixPart* part, uint8_t** rows, int64_t count, uint64_t* prefixes) noexcept nogil:
    cdef PrefixPart own = part[0]
    cdef int64_t row
    for row in range(count):
        prefixes[row] |= _placed(&own, _leading_bytes(rows[row] + own.key.slot, <uint64_t>own.key.width)
                                 >> (PREFIX_BITS - own.value_bits))


cdef void _add_decimals(const PrefixPart* part, uint8_t** rows, int64_t count, uint64_t* prefixes) noexcept nogil:
    """The highest 64 of the bits that the precision needs, sign flipped."""
    cdef PrefixPart own = part[0]
    cdef int32_t cut = own.whole_bits - own.value_bits
    cdef int32_t word = (cut >> 6) << 3
    cdef int32_t rest = cut & 63
    cdef uint64_t sign = <uint64_t>1 << (own.value_bits - 1)
    cdef uint64_t mask = (~<uint64_t>0) >> (PREFIX_BITS - own.value_bits)
    cdef uint64_t value
    cdef int64_t row
    for row in range(count):
        value = load64(rows[row] + own.key.slot + word)
        if rest:
            value = value >> rest | load64(rows[row] + own.key.slot + word + 8) << (64 - rest)
        prefixes[row] |= _placed(&own, (value & mask) ^ sign)


cdef void _add_markers(const PrefixPart* part, uint8_t** rows, int64_t count, uint64_t* prefixes) noexcept nogil:
    cdef PrefixPart own = part[0]
    cdef int64_t row
    for row in range(count):
        prefixes[row] |= <uint64_t>(row_is_null(rows[row], own.key.column) == own.key.nulls_last) << own.marker_shift


cdef void _clamp(const PrefixPart* part, uint8_t** rows, int64_t count, uint64_t* prefixes) noexcept nogil:
    """Make room for null at the end of the numbers where it is, in prefixes that are one number."""
    cdef PrefixPart own = part[0]
    cdef uint64_t null = ~<uint64_t>0 if own.key.nulls_last else 0
    cdef uint64_t next = null - 1 if own.key.nulls_last else 1
    cdef int64_t row
    for row in range(count):
        if row_is_null(rows[row], own.key.column):
            prefixes[row] = null
        elif prefixes[row] == null:
            prefixes[row] = next


cdef tuple _value_bits(object data_type, int32_t order, int32_t width, bint is_bool):
    """Return (bits of the ordered value that can go into a prefix, bits of the whole value or -1 when unbounded)."""
    if order == ORDER_NULL:
        return 0, 0
    if order == ORDER_BYTES:
        return PREFIX_BITS, -1
    if order == ORDER_DECIMAL:
        bits = (10 ** data_type.precision).bit_length() + 1
    elif is_bool:
        bits = 1
    else:
        bits = width * 8
    return min(bits, PREFIX_BITS), bits


cdef inline bint _is_word(const PrefixPart* part) noexcept nogil:
    """Return whether values are numbers of 64 bits."""
    return part.key.width == 8 and part.key.order not in (ORDER_NULL, ORDER_BYTES, ORDER_FIXED_BYTES, ORDER_DECIMAL)


@cython.final
cdef class NormalizedKey:
    """An 8-byte prefix of the sort keys of rows.

    Args:
        codec: RowCodec of the rows.
        keys: SortKey, the first decides first.

    Raises:
        SchemaError: a column does not exist or cannot be a key.
    """

    def __cinit__(self, RowCodec codec not None, keys):
        cdef int32_t index
        self._codec = codec
        self.column_count = len(keys)
        self._parts = <PrefixPart*>calloc(<size_t>self.column_count + 1, sizeof(PrefixPart))
        if self._parts == NULL:
            raise MemoryError
        for index in range(self.column_count):
            read_sort_key(codec, keys[index], &self._parts[index].key)
        self._place_parts()
        self.ties.any = not self.decides
        self.ties.is_one = self.column_count == 1 and self._parts[0].clamps
        self.ties.one = ~<uint64_t>0 - 1 if self._parts[0].key.nulls_last else 1

    cdef int _place_parts(self) except -1:
        """Give each key its bits until none are left."""
        cdef PrefixPart* part
        cdef int32_t room = PREFIX_BITS
        cdef int32_t index
        self.decides = True
        for index in range(self.column_count):
            if room == 0:
                self.decides = False
                return 0
            part = &self._parts[index]
            field = self._codec.schema.field(part.key.column)
            part.marker_shift = -1
            bits, whole = _value_bits(field.type, part.key.order, part.key.width,
                                      self._codec.kinds[part.key.column] == KIND_BOOL)
            if field.nullable and room == PREFIX_BITS and _is_word(part):
                part.clamps = True
            elif field.nullable and part.key.order != ORDER_NULL:
                room -= 1
                part.marker_shift = room
            part.value_bits = bits
            part.whole_bits = whole
            part.shift = room - part.value_bits
            self._part_count = index + 1
            if part.clamps or whole < 0 or whole > room:
                self.decides = False
                return 0
            room -= bits
        return 0

    def __dealloc__(self):
        free(self._parts)

    cdef void prefixes_of_rows(self, uint8_t** rows, int64_t count, uint64_t* prefixes) noexcept nogil:
        """Compute the prefix of each row."""
        cdef int64_t row
        cdef int32_t index
        for row in range(count):
            if row + AHEAD < count:
                prefetch(rows[row + AHEAD])
            prefixes[row] = 0
        for index in range(self._part_count):
            self._add_part(&self._parts[index], rows, count, prefixes)

    cdef void _add_part(self, const PrefixPart* part, uint8_t** rows, int64_t count,
                        uint64_t* prefixes) noexcept nogil:
        """Or one key's bits into the prefixes."""
        if part.marker_shift >= 0:
            _add_markers(part, rows, count, prefixes)
        if part.value_bits == 0 or part.shift <= -PREFIX_BITS:
            return
        if part.key.order == ORDER_BYTES:
            _add_bytes(part, rows, count, prefixes)
        elif part.key.order == ORDER_FIXED_BYTES:
            _add_fixed_bytes(part, rows, count, prefixes)
        elif part.key.order == ORDER_DECIMAL:
            _add_decimals(part, rows, count, prefixes)
        elif part.key.width == 8:
            _add_words[uint64_t](NULL, part, rows, count, prefixes)
            if part.clamps:
                _clamp(part, rows, count, prefixes)
        elif part.key.width == 4:
            _add_words[uint32_t](NULL, part, rows, count, prefixes)
        elif part.key.width == 2:
            _add_words[uint16_t](NULL, part, rows, count, prefixes)
        else:
            _add_words[uint8_t](NULL, part, rows, count, prefixes)
