"""Blocks of ordinary JSON lines straight into Arrow columns; whatever is not ordinary is left to Arrow's parser.

    parses_natively(type)                texts, binary, whole numbers, floats, bools, timestamps; lists and structs
    JsonColumns(schema, read_as)         ``read_as``: each column as Arrow's parser would be asked for it
        .parse(block) -> pa.Table        of ``read_as``
                      -> None            not ordinary, nothing was done
        .new_members() -> [("a", "b")]   members that were met and are none of the schema's, each once, as paths

    block ──walk_lines──► places of values, node by node ──node by node──► validity, offsets, texts, numbers ──► columns

What is ordinary ``json_tree`` says; besides, numbers fit their column, and Arrow casts texts to timestamps and to
floats of more than fifteen digits. So what comes out is what Arrow's JSON reader would have returned, only sooner;
where it would raise, this module returns None and lets it. But for two things, for which Arrow's reader must be given
other lines (``json_lines``): where a text is wanted there is the JSON text of what is none, and an object may be a map.

The places of values are kept from call to call, with the names of members. Used by one thread; kernels run without the
GIL.

Held by: tests/connectors/test_json_columns.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

import pyarrow as pa

from engine.records.arrow_functions import pc

from engine.connectors.json_text cimport unescape
from engine.connectors.json_tree cimport (
    BLOCK_BYTES_MAX, ESCAPED_TEXT, LEAF, LIST, MAP, NESTED, NULL_VALUE, NUMBER, OBJECT, TEXT, TRUTH, Member, Node,
    Value, Walk, kind_of, size_of, walk_lines,
)
from engine.csv.field_numbers cimport parse_decimal, parse_integer, put_integer

cdef enum:
    COPY_SLACK = 32
    TAKES_TEXT = 1 << TEXT | 1 << ESCAPED_TEXT
    TAKES_ALL = TAKES_TEXT | 1 << NUMBER | 1 << TRUTH | 1 << NESTED

cdef object STRING = pa.string()
# What is read as a text, and cast where it is another type; and what its values are.
cdef dict TEXTS = {
    STRING: TAKES_TEXT, pa.large_string(): TAKES_TEXT, pa.binary(): TAKES_TEXT, pa.float32(): 1 << NUMBER,
    **{pa.timestamp(unit): TAKES_TEXT for unit in ("s", "ms", "us", "ns")},
}
cdef set WHOLE = {
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
}
cdef object BINARY = pa.binary()
cdef object DOUBLE = pa.float64()
cdef object TRUTHS = pa.bool_()


def parses_natively(data_type):
    """Return whether columns of an Arrow type can be read here."""
    if pa.types.is_struct(data_type):
        return data_type.num_fields > 0 and all([parses_natively(field.type) for field in data_type])
    if pa.types.is_list(data_type):
        return parses_natively(data_type.value_type)
    return data_type in TEXTS or data_type in WHOLE or data_type == DOUBLE or data_type == TRUTHS


# Set bits of values that are not null; returns how many are null. ``validity`` is all zero.
cdef int64_t mark_valid(const Node* node, uint8_t* validity) noexcept nogil:
    cdef int64_t row_index
    cdef int64_t null_count = 0
    for row_index in range(node.count):
        if kind_of(&node.values[row_index]) == NULL_VALUE:
            null_count += 1
        else:
            validity[row_index >> 3] |= <uint8_t>(1 << (row_index & 7))
    return null_count


cdef int64_t text_bytes(const Node* node) noexcept nogil:
    cdef int64_t total = 0
    cdef int64_t row_index
    for row_index in range(node.count):
        total += size_of(&node.values[row_index])
    return total


# Short ones, most of them, without a call; up to COPY_SLACK bytes are written behind a text.
cdef inline void copy_text(uint8_t* out, const uint8_t* text, int64_t size, const uint8_t* end) noexcept nogil:
    if size <= COPY_SLACK and end - text >= COPY_SLACK:
        memcpy(out, text, COPY_SLACK)
    else:
        memcpy(out, text, size)


cdef void read_texts(const Walk* walk, const Node* node, int32_t* offsets, uint8_t* out) noexcept nogil:
    cdef const Value* value
    cdef int64_t row_index
    cdef int64_t used = 0
    offsets[0] = 0
    for row_index in range(node.count):
        value = &node.values[row_index]
        if kind_of(value) == ESCAPED_TEXT:
            used += unescape(out + used, walk.data + value.begin, size_of(value))
        else:
            copy_text(out + used, walk.data + value.begin, size_of(value), walk.end)
            used += size_of(value)
        offsets[row_index + 1] = <int32_t>used


# False: one is no whole number, or does not fit.
cdef bint read_integers(const Walk* walk, const Node* node, uint8_t* out, int32_t width, bint is_signed) noexcept nogil:
    cdef const Value* place
    cdef int64_t row_index, value
    cdef int64_t high = <int64_t>((<uint64_t>1 << (8 * width - is_signed if width < 8 else 63)) - 1)
    cdef int64_t low = -high - 1 if is_signed else 0
    for row_index in range(node.count):
        place = &node.values[row_index]
        value = 0
        if kind_of(place) != NULL_VALUE:
            if not parse_integer(walk.data + place.begin, size_of(place), walk.end, &value):
                return False
            # A minus zero is no unsigned number.
            if not low <= value <= high or (not is_signed and walk.data[place.begin] == 45):
                return False
        put_integer(out, row_index, width, value)
    return True


# False: one has more digits, or an exponent.
cdef bint read_doubles(const Walk* walk, const Node* node, double* out) noexcept nogil:
    cdef const Value* place
    cdef int64_t row_index
    for row_index in range(node.count):
        place = &node.values[row_index]
        out[row_index] = 0
        if kind_of(place) != NULL_VALUE:
            if not parse_decimal(walk.data + place.begin, size_of(place), walk.end, &out[row_index]):
                return False
    return True


cdef void read_truths(const Walk* walk, const Node* node, uint8_t* bits) noexcept nogil:
    cdef int64_t row_index
    for row_index in range(node.count):
        if kind_of(&node.values[row_index]) == TRUTH and walk.data[node.values[row_index].begin] == 116:
            bits[row_index >> 3] |= <uint8_t>(1 << (row_index & 7))


cdef void read_ends(const Node* node, int32_t* offsets) noexcept nogil:
    cdef int64_t row_index
    offsets[0] = 0
    for row_index in range(node.count):
        offsets[row_index + 1] = node.values[row_index].begin


# A column (name, type as it is read, type that is wanted) as a node: name, kind, what it takes, columns within it. The
# key of a map has no wanted type: it is a text without escapes.
cdef tuple node_of(tuple column):
    name, read, wanted = column
    if pa.types.is_struct(read):
        return name, OBJECT, 0, [(field.name, field.type, wanted.field(field.name).type) for field in read]
    if wanted is not None and pa.types.is_map(wanted):
        key, item = read.value_type
        return name, MAP, 0, [("", key.type, None), ("", item.type, wanted.item_type)]
    if pa.types.is_list(read):
        return name, LIST, 0, [("", read.value_type, wanted.value_type)]
    if wanted is None:
        return name, LEAF, 1 << TEXT, []
    return name, LEAF, TAKES_ALL if is_text(wanted) else takes_of(read), []


cdef bint is_text(object data_type):
    return pa.types.is_string(data_type) or pa.types.is_large_string(data_type)


cdef int32_t takes_of(object data_type):
    return TEXTS.get(data_type, 1 << TRUTH if data_type == TRUTHS else 1 << NUMBER)


@cython.final
cdef class JsonColumns:
    """Parses blocks of whole lines into columns, each of which ``parses_natively`` as it is read."""

    cdef Walk _walk
    cdef int32_t _node_count
    cdef object _schema
    cdef list _paths             # of the nodes
    cdef int64_t _seen           # members that all nodes had when they were looked at
    cdef set _told

    def __cinit__(self, schema not None, read_as not None):
        self._schema = read_as
        columns = [(read.name, read.type, field.type) for field, read in zip(schema, read_as, strict=True)]
        # Level by level, so that the children of a node lie together.
        nodes = [("", OBJECT, 0, columns)]
        self._paths = [()]
        self._told = set()
        waiting = [((), each) for each in columns]
        while waiting:
            made = [node_of(each) for _, each in waiting]
            paths = [(*path, each[0]) if each[0] else path for path, each in waiting]
            nodes += made
            self._paths += paths
            waiting = [(path, child) for path, node in zip(paths, made) for child in node[3]]
        self._walk.nodes = <Node*>calloc(len(nodes), sizeof(Node))
        if self._walk.nodes == NULL:
            raise MemoryError("no memory for the columns of JSON lines")
        self._node_count = len(nodes)
        first_child = 1
        for index, (name, kind, takes, children) in enumerate(nodes):
            self._fill(&self._walk.nodes[<int32_t>index], b'"%s"' % name.encode(), kind, takes)
            self._walk.nodes[<int32_t>index].first_child = first_child
            self._walk.nodes[<int32_t>index].child_count = len(children)
            first_child += len(children)

    cdef int _fill(self, Node* node, bytes name, int32_t kind, int32_t takes) except -1:
        node.kind = kind
        node.takes = takes
        node.name_size = len(name)
        node.name = <uint8_t*>malloc(node.name_size)
        if node.name == NULL:
            raise MemoryError("no memory for the columns of JSON lines")
        memcpy(node.name, <const char*>name, node.name_size)
        return 0

    def __dealloc__(self):
        cdef int32_t index, member
        cdef Node* node
        for index in range(self._node_count):
            node = &self._walk.nodes[index]
            for member in range(node.member_count):
                free(node.members[member].name)
            free(node.members)
            free(node.values)
            free(node.name)
        free(self._walk.nodes)

    def parse(self, bytes block not None):
        """Return the rows of whole lines of UTF-8, or None where Arrow's parser is wanted."""
        cdef const uint8_t* data = <const uint8_t*><const char*>block
        cdef int64_t size = len(block)
        cdef int32_t index
        cdef bint done
        if size >= BLOCK_BYTES_MAX:
            return None
        for index in range(self._node_count):
            self._walk.nodes[index].count = 0
        self._walk.lacks_memory = False
        with nogil:
            done = walk_lines(&self._walk, data, size)
        if self._walk.lacks_memory:
            raise MemoryError(f"no memory for the values of a block of JSON lines of {size} bytes")
        if not done:
            return None
        if not len(self._schema):
            return pa.table({"": pa.nulls(self._walk.nodes[0].count)})
        try:
            arrays = [self._array(index + 1, field.type) for index, field in enumerate(self._schema)]
        except pa.ArrowInvalid:
            return None
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def new_members(self):
        """Return the paths of members that are none of the schema's, of those that were met since the last call."""
        cdef int32_t index, member
        cdef int64_t seen = 0
        cdef Member* found
        for index in range(self._node_count):
            seen += self._walk.nodes[index].member_count
        if seen == self._seen:
            return []
        self._seen = seen
        paths = []
        for index in range(self._node_count):
            for member in range(self._walk.nodes[index].member_count):
                found = &self._walk.nodes[index].members[member]
                if found.child < 0:
                    name = (<const char*>found.name)[1:found.size - 1].decode("utf-8", "replace")
                    paths.append((*self._paths[index], name))
        fresh = [path for path in paths if path not in self._told]
        self._told.update(fresh)
        return fresh

    # Raises pa.ArrowInvalid: a value does not fit.
    cdef object _array(self, int32_t index, object data_type):
        cdef Node* node = &self._walk.nodes[index]
        cdef object validity = self._zeros((node.count + 7) // 8)
        cdef int64_t null_count
        cdef uint8_t* bits = <uint8_t*><uintptr_t>validity.address
        with nogil:
            null_count = mark_valid(node, bits)
        if not null_count:
            validity = None
        if node.kind == LEAF:
            return self._leaf(node, data_type, validity, null_count)
        buffers = [validity]
        if node.kind == OBJECT:
            children = [self._array(node.first_child + number, field.type) for number, field in enumerate(data_type)]
        else:
            buffers.append(self._ends(node))
            children = [self._elements(node, data_type.value_type)]
        return pa.Array.from_buffers(data_type, node.count, buffers, null_count, children=children)

    cdef object _elements(self, Node* node, object data_type):
        if node.kind == LIST:
            return self._array(node.first_child, data_type)
        parts = [self._array(node.first_child + number, field.type) for number, field in enumerate(data_type)]
        return pa.Array.from_buffers(data_type, len(parts[0]), [None], 0, children=parts)

    cdef object _leaf(self, Node* node, object data_type, object validity, int64_t null_count):
        cdef object values
        cdef uint8_t* out
        cdef int32_t width
        cdef bint is_signed, done
        if data_type in TEXTS:
            return self._texts(node, data_type, validity, null_count)
        if data_type == TRUTHS:
            values = self._zeros((node.count + 7) // 8)
            out = <uint8_t*><uintptr_t>values.address
            with nogil:
                read_truths(&self._walk, node, out)
            return pa.Array.from_buffers(data_type, node.count, [validity, values], null_count)
        width = data_type.byte_width
        is_signed = pa.types.is_signed_integer(data_type)
        values = pa.allocate_buffer(node.count * width)
        out = <uint8_t*><uintptr_t>values.address
        if data_type == DOUBLE:
            with nogil:
                done = read_doubles(&self._walk, node, <double*>out)
            if not done:
                return self._texts(node, data_type, validity, null_count)
        else:
            with nogil:
                done = read_integers(&self._walk, node, out, width, is_signed)
            if not done:
                raise pa.ArrowInvalid("whole numbers that do not fit")
        return pa.Array.from_buffers(data_type, node.count, [validity, values], null_count)

    cdef object _texts(self, Node* node, object data_type, object validity, int64_t null_count):
        cdef object offsets = pa.allocate_buffer((node.count + 1) * sizeof(int32_t))
        cdef object texts = pa.allocate_buffer(text_bytes(node) + COPY_SLACK)
        cdef int32_t* ends = <int32_t*><uintptr_t>offsets.address
        cdef uint8_t* out = <uint8_t*><uintptr_t>texts.address
        with nogil:
            read_texts(&self._walk, node, ends, out)
        read_as = data_type if data_type == BINARY else STRING
        array = pa.Array.from_buffers(read_as, node.count, [validity, offsets, texts], null_count)
        return array if data_type == read_as else pc.cast(array, data_type)

    cdef object _ends(self, Node* node):
        cdef object offsets = pa.allocate_buffer((node.count + 1) * sizeof(int32_t))
        cdef int32_t* ends = <int32_t*><uintptr_t>offsets.address
        with nogil:
            read_ends(node, ends)
        return offsets

    cdef object _zeros(self, int64_t size):
        cdef object buffer = pa.allocate_buffer(size)
        memset(<void*><uintptr_t>buffer.address, 0, size)
        return buffer
