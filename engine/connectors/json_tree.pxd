# Lines of JSON walked by the tree of what is wanted of them: one list of places of values for each column.
#
#     walk_lines(walk, data, size)         True: all lines are ordinary, and node.values are filled
#
#     root OBJECT ─┬─ id    LEAF           {"id":1,"tags":["a","b"]}        id    1, null
#                  └─ tags  LIST ── LEAF   {"tags":null}                    tags  up to 2, null     tags' leaf  a, b
#
# A node has one value for each of its parent's: each line, each present or null object, each element of a list. The
# first node is the root. What is no member of the schema is passed over, but must be JSON.
#
# Names come in the order of the line before, most of the time: a node keeps them in that order, those that are passed
# over as well, and compares with the next one first.
#
# Ordinary is: one object a line; names without escapes, none of a column twice in an object; values of the kind that
# a leaf takes (``takes``), or null; nothing deeper than DEPTH_MAX.

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum NodeKind:
    LEAF = 0
    OBJECT = 1
    LIST = 2
    MAP = 3                  # an object as a list of two children, keys and values

# What a value is; the bit of its number in ``takes`` says that a leaf takes it.
cdef enum ValueKind:
    NULL_VALUE = 0
    TEXT = 1
    ESCAPED_TEXT = 2
    NUMBER = 3
    TRUTH = 4                # true or false
    NESTED = 5               # an object or a list, as its text

cdef enum:
    KIND_BITS = 3
    BLOCK_BYTES_MAX = 1 << 28

cdef struct Value:
    int32_t begin            # of its text, quotes not included; of a list, the elements up to its end
    int32_t size_and_kind    # size << KIND_BITS | kind

cdef struct Member:
    uint8_t* name            # with its quotes
    int32_t size
    int32_t child            # node; -1: passed over

cdef struct Node:
    int32_t kind
    int32_t takes
    int32_t first_child
    int32_t child_count
    uint8_t* name            # of a child of an object, with its quotes
    int32_t name_size
    Value* values
    int64_t count
    int64_t capacity
    Member* members
    int32_t member_count
    int32_t cursor           # member that is expected next

cdef struct Walk:
    Node* nodes
    const uint8_t* data
    const uint8_t* end
    bint lacks_memory        # why walk_lines returned False


cdef inline int32_t kind_of(const Value* value) noexcept nogil:
    return value.size_and_kind & ((1 << KIND_BITS) - 1)


cdef inline int64_t size_of(const Value* value) noexcept nogil:
    return value.size_and_kind >> KIND_BITS


cdef bint walk_lines(Walk* walk, const uint8_t* data, int64_t size) noexcept nogil
