"""Whether a Parquet footer can be what it says, before pyarrow is asked about it.

    check_footer(data)      ValueError: what is damaged, and where

    FileMetaData   2 schema, a tree as a list      1 type   3 repetition   4 name   5 children      leaves: columns
                   4 row groups ─► 1 columns ─► 3 metadata   1 type   3 path   4 codec   16 sizes of levels

pyarrow looks at a column chunk when it is asked about it, from functions that cannot raise: a codec or a type that is
none ends the process. What is looked at here is what it would end for; everything else it refuses by itself.

Source: parquet-format, parquet.thrift; in Thrift's compact protocol (``compact_protocol``).
Held by: tests/parquet/test_footer_check.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from engine.parquet.compact_protocol cimport (
    IS_BINARY,
    IS_INT32,
    IS_LIST,
    IS_STRUCT,
    Cursor,
    begin_list,
    next_field,
    next_list,
    next_number,
    next_varint,
    pass_over,
    skip_field,
)

cdef enum:
    TYPE_MAX = 7                # FIXED_LEN_BYTE_ARRAY
    BYTE_ARRAY = 6
    CODEC_MAX = 7               # LZ4_RAW
    REQUIRED = 0
    REPEATED = 2
    NOTHING = -1


cdef struct Leaf:
    int64_t data_type
    int64_t definition_max
    int64_t repetition_max


cdef struct Element:
    int64_t data_type           # NOTHING: of a group
    int64_t repetition
    int64_t children


cdef struct Chunk:
    int64_t data_type
    int64_t codec
    int64_t repetition_sizes    # entries of histograms of levels; 0: there is none
    int64_t definition_sizes
    bint has_text_bytes


cdef int check_text(Cursor* cursor) except -1:
    """Pass over a text; ValueError where it is none."""
    cdef uint64_t size = next_varint(cursor)
    cdef int64_t begin = cursor.at
    cdef int64_t index
    cdef bint is_plain = True
    pass_over(cursor, size)
    if cursor.at > cursor.size:
        return 0
    for index in range(begin, cursor.at):
        if cursor.data[index] >= 0x80:
            is_plain = False
    if not is_plain:
        try:
            (<const char*>cursor.data)[begin:cursor.at].decode()
        except UnicodeDecodeError:
            raise ValueError("the name of a column is no UTF-8") from None
    return 0


cdef int read_element(Cursor* cursor, Element* element) except -1:
    cdef int64_t field = 0
    cdef int32_t kind = next_field(cursor, &field)
    element.data_type, element.repetition, element.children = NOTHING, REQUIRED, 0
    while kind:
        if kind == IS_INT32 and field == 1:
            element.data_type = next_number(cursor)
        elif kind == IS_INT32 and field == 3:
            element.repetition = next_number(cursor)
        elif kind == IS_BINARY and field == 4:
            check_text(cursor)
        elif kind == IS_INT32 and field == 5:
            element.children = next_number(cursor)
        else:
            skip_field(cursor, kind)
        kind = next_field(cursor, &field)
    return 0


cdef class Leaves:
    """Columns of a schema, in the order in which row groups have them."""

    cdef Leaf* all
    cdef int64_t count

    def __dealloc__(self):
        free(self.all)

    cdef int read(self, Cursor* cursor, int64_t elements) except -1:
        """Read the elements of a schema; the first one is the root."""
        cdef Element element
        cdef int64_t index
        cdef list open_groups = []      # of each: children that are still to come, levels
        cdef int64_t definition, repetition, left
        cdef bint is_known
        if self.all != NULL:
            raise ValueError("it has a second schema")
        self.all = <Leaf*> malloc(<size_t> (elements + 1) * sizeof(Leaf))
        if self.all == NULL:
            raise MemoryError
        for index in range(elements):
            read_element(cursor, &element)
            if cursor.at > cursor.size:
                return 0
            if index == 0:
                open_groups.append((element.children, 0, 0))
                continue
            left = 0
            while open_groups and left == 0:
                left, definition, repetition = open_groups.pop()
            is_known = NOTHING <= element.data_type <= TYPE_MAX and REQUIRED <= element.repetition <= REPEATED
            if left <= 0 or not is_known or element.children < 0:
                raise ValueError(f"element {index} of its schema is none")
            open_groups.append((left - 1, definition, repetition))
            definition += element.repetition != REQUIRED
            repetition += element.repetition == REPEATED
            if element.children:
                open_groups.append((element.children, definition, repetition))
            else:
                self.all[self.count] = Leaf(element.data_type, definition, repetition)
                self.count += 1
        return 0


cdef void read_sizes(Cursor* cursor, Chunk* chunk) noexcept nogil:
    """Read the statistics of sizes: how many entries their histograms have."""
    cdef int64_t field = 0
    cdef Cursor ahead
    cdef int32_t inner = 0
    cdef int32_t kind = next_field(cursor, &field)
    while kind:
        ahead = cursor[0]
        if kind == IS_LIST and field == 2:
            chunk.repetition_sizes = next_list(&ahead, &inner)
        elif kind == IS_LIST and field == 3:
            chunk.definition_sizes = next_list(&ahead, &inner)
        elif field == 1:
            chunk.has_text_bytes = True
        skip_field(cursor, kind)
        kind = next_field(cursor, &field)


cdef int read_metadata(Cursor* cursor, Chunk* chunk) except -1:
    cdef int64_t field = 0
    cdef int64_t index
    cdef int32_t kind = next_field(cursor, &field)
    while kind:
        if kind == IS_INT32 and field == 1:
            chunk.data_type = next_number(cursor)
        elif field == 3:
            for index in range(begin_list(cursor, kind, IS_BINARY)):
                check_text(cursor)
        elif kind == IS_INT32 and field == 4:
            chunk.codec = next_number(cursor)
        elif kind == IS_STRUCT and field == 16:
            read_sizes(cursor, chunk)
        else:
            skip_field(cursor, kind)
        kind = next_field(cursor, &field)
    return 0


cdef str fault_of(const Chunk* chunk, const Leaf* leaf):
    """Return the fault of a column chunk, None: there is none."""
    if chunk.data_type != leaf.data_type:
        return f"its type is {chunk.data_type}, and {leaf.data_type} in the schema"
    if not 0 <= chunk.codec <= CODEC_MAX:
        return f"its codec {chunk.codec} is none"
    if chunk.repetition_sizes and chunk.repetition_sizes != leaf.repetition_max + 1:
        return f"it has {chunk.repetition_sizes} repetition levels, and {leaf.repetition_max + 1} in the schema"
    if chunk.definition_sizes and chunk.definition_sizes != leaf.definition_max + 1:
        return f"it has {chunk.definition_sizes} definition levels, and {leaf.definition_max + 1} in the schema"
    if chunk.has_text_bytes and leaf.data_type != BYTE_ARRAY:
        return "it has bytes of texts, and is none"
    return None


cdef int check_chunk(Cursor* cursor, Leaves leaves, int64_t group, int64_t column) except -1:
    cdef Chunk chunk
    cdef int64_t field = 0
    cdef bint is_described = False
    cdef int32_t kind = next_field(cursor, &field)
    chunk.data_type = chunk.codec = NOTHING
    chunk.repetition_sizes = chunk.definition_sizes = 0
    chunk.has_text_bytes = False
    while kind:
        if kind == IS_STRUCT and field == 3:
            is_described = True
            read_metadata(cursor, &chunk)
        else:
            skip_field(cursor, kind)
        kind = next_field(cursor, &field)
    if cursor.at > cursor.size or not is_described:
        return 0                        # pyarrow's to say
    if column >= leaves.count:
        raise ValueError(f"row group {group} has a column {column}, and its schema {leaves.count}")
    fault = fault_of(&chunk, &leaves.all[column])
    if fault is not None:
        raise ValueError(f"row group {group}, column {column}: {fault}")
    return 0


cdef int check_group(Cursor* cursor, Leaves leaves, int64_t group) except -1:
    cdef int64_t field = 0
    cdef int64_t column
    cdef int32_t kind = next_field(cursor, &field)
    while kind:
        if field == 1:
            for column in range(begin_list(cursor, kind, IS_STRUCT)):
                check_chunk(cursor, leaves, group, column)
        else:
            skip_field(cursor, kind)
        kind = next_field(cursor, &field)
    return 0


def check_footer(const uint8_t[::1] footer not None):
    """Raise ValueError where a footer's column chunks cannot be what they say. What is cut off is pyarrow's to say."""
    cdef Cursor cursor
    cdef Leaves leaves = Leaves()
    cdef int64_t field = 0
    cdef int64_t group
    cdef int32_t kind
    cursor.data = &footer[0] if footer.shape[0] else NULL
    cursor.size, cursor.at = footer.shape[0], 0
    kind = next_field(&cursor, &field)
    while kind:
        if field == 2:
            leaves.read(&cursor, begin_list(&cursor, kind, IS_STRUCT))
        elif field == 4:
            for group in range(begin_list(&cursor, kind, IS_STRUCT)):
                check_group(&cursor, leaves, group)
        else:
            skip_field(&cursor, kind)
        kind = next_field(&cursor, &field)
