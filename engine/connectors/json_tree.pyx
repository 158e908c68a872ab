"""The walk over lines of JSON that ``json_tree.pxd`` describes. Kernels without the GIL; nothing here is for Python.

Source: RFC 8259; Li et al., "Mison: a fast JSON parser for data analytics" (2017) for the order of members, which lines
share.
Held by: tests/connectors/test_json_columns.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove

from engine.connectors.json_text cimport QUOTE, behind_space, is_digit, number_end, text_end, word_end

cdef enum:
    DEPTH_MAX = 64
    MEMBERS_MAX = 1024       # names that a node keeps; objects with more names among them are not read here
    KEYS_MAX = 64            # of a map, each of which is compared with all of them
    NEWLINE = 10
    COMMA = 44
    COLON = 58
    BRACKET = 91
    CLOSING_BRACKET = 93
    BRACE = 123
    CLOSING_BRACE = 125


cdef inline bint put(Walk* walk, Node* node, int64_t begin, int64_t size, int32_t kind) noexcept nogil:
    cdef Value* values
    cdef int64_t capacity
    if node.count == node.capacity:
        capacity = 2 * node.capacity + 1024
        values = <Value*>realloc(node.values, capacity * sizeof(Value))
        if values == NULL:
            walk.lacks_memory = True
            return False
        node.values = values
        node.capacity = capacity
    node.values[node.count].begin = <int32_t>begin
    node.values[node.count].size_and_kind = <int32_t>(size << KIND_BITS | kind)
    node.count += 1
    return True


cdef bint put_null(Walk* walk, Node* node) noexcept nogil:
    cdef int32_t index
    if not put(walk, node, end_of(walk, node), 0, NULL_VALUE):
        return False
    if node.kind == OBJECT:
        for index in range(node.child_count):
            if not put_null(walk, walk.nodes + node.first_child + index):
                return False
    return True


# What a list's value says of where it ends: how many elements there are.
cdef inline int64_t end_of(const Walk* walk, const Node* node) noexcept nogil:
    return walk.nodes[node.first_child].count if node.kind >= LIST else 0


# Behind any value, which must be JSON.
cdef const uint8_t* value_end(const uint8_t* at, const uint8_t* end, int32_t depth) noexcept nogil:
    cdef uint8_t closing
    cdef bint escaped
    if at[0] == QUOTE:
        at = text_end(at + 1, end, &escaped)
        return NULL if at == NULL else at + 1
    if at[0] != BRACE and at[0] != BRACKET:
        return number_end(at) if at[0] == 45 or is_digit(at) else word_end(at)
    if depth == DEPTH_MAX:
        return NULL
    closing = at[0] + 2
    at = behind_space(at + 1)
    if at[0] == closing:
        return at + 1
    while True:
        if closing == CLOSING_BRACE:
            if at[0] != QUOTE:
                return NULL
            at = text_end(at + 1, end, &escaped)
            if at == NULL:
                return NULL
            at = behind_space(at + 1)
            if at[0] != COLON:
                return NULL
            at = behind_space(at + 1)
        at = value_end(at, end, depth + 1)
        if at == NULL:
            return NULL
        at = behind_space(at)
        if at[0] == closing:
            return at + 1
        if at[0] != COMMA:
            return NULL
        at = behind_space(at + 1)


cdef inline bint is_named(const uint8_t* name, int32_t size, const uint8_t* at, const uint8_t* end) noexcept nogil:
    return end - at > size and at[size - 1] == QUOTE and at[1] == name[1] and memcmp(at, name, size) == 0


# The member whose name begins at a quote; NULL: not ordinary.
cdef Member* member_at(Walk* walk, Node* node, const uint8_t* at) noexcept nogil:
    cdef int32_t step
    cdef Member* member
    for step in range(node.member_count):
        if node.cursor == node.member_count:
            node.cursor = 0
        member = node.members + node.cursor
        node.cursor += 1
        if is_named(member.name, member.size, at, walk.end):
            return member
    return learned(walk, node, at)


# The member of a name that is met for the first time, kept behind the one before it.
cdef Member* learned(Walk* walk, Node* node, const uint8_t* at) noexcept nogil:
    cdef bint escaped
    cdef const uint8_t* closing = text_end(at + 1, walk.end, &escaped)
    cdef Member* members
    cdef Member member
    cdef int32_t index
    if closing == NULL or escaped or node.member_count == MEMBERS_MAX:
        return NULL
    member.size = <int32_t>(closing + 1 - at)
    member.child = -1
    for index in range(node.first_child, node.first_child + node.child_count):
        if walk.nodes[index].name_size == member.size and memcmp(walk.nodes[index].name, at, member.size) == 0:
            member.child = index
    member.name = <uint8_t*>malloc(member.size)
    members = <Member*>realloc(node.members, (node.member_count + 1) * sizeof(Member))
    if members != NULL:
        node.members = members
    if member.name == NULL or members == NULL:
        free(member.name)
        walk.lacks_memory = True
        return NULL
    memcpy(member.name, at, member.size)
    memmove(members + node.cursor + 1, members + node.cursor, (node.member_count - node.cursor) * sizeof(Member))
    members[node.cursor] = member
    node.member_count += 1
    node.cursor += 1
    return members + node.cursor - 1


# Behind a value, which becomes the node's next one; NULL: not ordinary.
cdef const uint8_t* read_value(Walk* walk, Node* node, const uint8_t* at) noexcept nogil:
    if at[0] == 110:
        at = word_end(at)
        return at if at != NULL and put_null(walk, node) else NULL
    if node.kind == LEAF:
        return read_leaf(walk, node, at)
    if node.kind == LIST:
        return read_list(walk, node, at)
    return read_object(walk, node, at) if node.kind == OBJECT else read_map(walk, node, at)


cdef const uint8_t* read_leaf(Walk* walk, Node* node, const uint8_t* at) noexcept nogil:
    cdef const uint8_t* begin = at
    cdef bint escaped = False
    cdef int32_t kind
    if at[0] == QUOTE:
        begin += 1
        at = text_end(begin, walk.end, &escaped)
        kind = ESCAPED_TEXT if escaped else TEXT
    elif at[0] == 45 or is_digit(at):
        at = number_end(at)
        kind = NUMBER
    elif at[0] == BRACE or at[0] == BRACKET:
        at = value_end(at, walk.end, 0)
        kind = NESTED
    else:
        at = word_end(at)
        kind = TRUTH
    if at == NULL or not node.takes >> kind & 1 or not put(walk, node, begin - walk.data, at - begin, kind):
        return NULL
    return at + 1 if kind <= ESCAPED_TEXT else at


cdef const uint8_t* read_list(Walk* walk, Node* node, const uint8_t* at) noexcept nogil:
    cdef Node* child = walk.nodes + node.first_child
    if at[0] != BRACKET:
        return NULL
    at = behind_space(at + 1)
    if at[0] == CLOSING_BRACKET:
        return at + 1 if put(walk, node, child.count, 0, NESTED) else NULL
    while True:
        at = read_value(walk, child, at)
        if at == NULL:
            return NULL
        at = behind_space(at)
        if at[0] == CLOSING_BRACKET:
            return at + 1 if put(walk, node, child.count, 0, NESTED) else NULL
        if at[0] != COMMA:
            return NULL
        at = behind_space(at + 1)


cdef const uint8_t* read_object(Walk* walk, Node* node, const uint8_t* at) noexcept nogil:
    cdef int64_t row_index = node.count
    cdef int32_t matched = 0
    cdef Member* member
    cdef Node* child
    if at[0] != BRACE or not put(walk, node, 0, 0, NESTED):
        return NULL
    node.cursor = 0
    at = behind_space(at + 1)
    while at[0] == QUOTE:
        member = member_at(walk, node, at)
        if member == NULL:
            return NULL
        at = behind_space(at + member.size)
        if at[0] != COLON:
            return NULL
        at = behind_space(at + 1)
        if member.child < 0:
            at = value_end(at, walk.end, 0)
        else:
            child = walk.nodes + member.child
            if child.count != row_index:
                return NULL
            at = read_value(walk, child, at)
            matched += 1
        if at == NULL:
            return NULL
        at = behind_space(at)
        if at[0] == CLOSING_BRACE:
            return at + 1 if matched == node.child_count or put_missing(walk, node, row_index) else NULL
        if at[0] != COMMA:
            return NULL
        at = behind_space(at + 1)
    # An object without members; behind a comma there must be one.
    if at[0] != CLOSING_BRACE or node.cursor:
        return NULL
    return at + 1 if put_missing(walk, node, row_index) else NULL


cdef bint put_missing(Walk* walk, Node* node, int64_t row_index) noexcept nogil:
    cdef int32_t index
    cdef Node* child
    for index in range(node.child_count):
        child = walk.nodes + node.first_child + index
        if child.count == row_index and not put_null(walk, child):
            return False
    return True


# A map has each key once, and they are compared as they are written: none with escapes.
cdef const uint8_t* read_map(Walk* walk, Node* node, const uint8_t* at) noexcept nogil:
    cdef Node* keys = walk.nodes + node.first_child
    cdef Node* items = keys + 1
    cdef int64_t first = keys.count
    if at[0] != BRACE:
        return NULL
    at = behind_space(at + 1)
    if at[0] == CLOSING_BRACE:
        return at + 1 if put(walk, node, keys.count, 0, NESTED) else NULL
    while at[0] == QUOTE and keys.count - first < KEYS_MAX:
        at = read_leaf(walk, keys, at)
        if at == NULL or has_key_twice(walk, keys, first):
            return NULL
        at = behind_space(at)
        if at[0] != COLON:
            return NULL
        at = read_value(walk, items, behind_space(at + 1))
        if at == NULL:
            return NULL
        at = behind_space(at)
        if at[0] == CLOSING_BRACE:
            return at + 1 if put(walk, node, keys.count, 0, NESTED) else NULL
        if at[0] != COMMA:
            return NULL
        at = behind_space(at + 1)
    return NULL


# Whether the last key is there before, from a first one on.
cdef bint has_key_twice(const Walk* walk, const Node* keys, int64_t first) noexcept nogil:
    cdef const Value* last = keys.values + keys.count - 1
    cdef int64_t index
    for index in range(first, keys.count - 1):
        if keys.values[index].size_and_kind == last.size_and_kind and memcmp(
            walk.data + keys.values[index].begin, walk.data + last.begin, size_of(last)
        ) == 0:
            return True
    return False


# Values of all lines; the text ends with a zero, and has fewer than BLOCK_BYTES_MAX bytes.
cdef bint walk_lines(Walk* walk, const uint8_t* data, int64_t size) noexcept nogil:
    cdef const uint8_t* at = data
    walk.data = data
    walk.end = data + size
    while True:
        at = behind_space(at)
        if at[0] == BRACE:
            at = read_object(walk, walk.nodes, at)
            if at == NULL:
                return False
            at = behind_space(at)
        if at == walk.end:
            return True
        if at[0] != NEWLINE:
            return False
        at += 1
