"""Kernels of Extremes: the least or greatest value of a sliding frame; what it is, is in ``extremes.pxd``.

Held by: tests/window/test_frame_aggregates.py
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from engine.accumulators.checked_sums cimport int128


cdef inline Item* item_at(Extremes* extremes, int64_t index) noexcept nogil:
    return &extremes.items[(extremes.first + index) & (extremes.capacity - 1)]


cdef inline void forget(Extremes* extremes, Item* item) noexcept nogil:
    if item.text != NULL:
        extremes.bytes -= item.size
        free(item.text)
        item.text = NULL


cdef void extremes_clear(Extremes* extremes) noexcept nogil:
    """Forget all values."""
    if extremes.of_texts:
        while extremes.count > 0:
            extremes.count -= 1
            forget(extremes, item_at(extremes, extremes.count))
    extremes.count = 0
    extremes.first = 0


cdef void extremes_free(Extremes* extremes) noexcept nogil:
    """Give the memory back."""
    extremes_clear(extremes)
    free(extremes.items)
    extremes.items = NULL
    extremes.capacity = 0


cdef bint is_before(const Extremes* extremes, const Item* item, int128 number, const uint8_t* text,
                    int64_t size) noexcept nogil:
    """Whether an item is strictly nearer to what is wanted than a value."""
    cdef int order
    if not extremes.of_texts:
        return item.number > number if extremes.greatest else item.number < number
    order = memcmp(item.text, text, <size_t> min(item.size, size))
    if order == 0:
        order = (item.size > size) - (item.size < size)
    return order > 0 if extremes.greatest else order < 0


cdef bint grow(Extremes* extremes) noexcept nogil:
    cdef int64_t capacity = extremes.capacity * 2 if extremes.capacity else 16
    cdef int64_t index
    cdef Item* items
    extremes.bytes += (capacity - extremes.capacity) * <int64_t> sizeof(Item)
    if extremes.bytes > extremes.most and extremes.capacity > 0:
        return False
    items = <Item*> malloc(<size_t> capacity * sizeof(Item))
    if items == NULL:
        return False
    for index in range(extremes.count):
        items[index] = item_at(extremes, index)[0]
    free(extremes.items)
    extremes.items = items
    extremes.capacity = capacity
    extremes.first = 0
    return True


cdef void extremes_push(Extremes* extremes, int64_t position, int128 number, const uint8_t* text,
                        int64_t size) noexcept nogil:
    """Take a value that enters."""
    cdef Item* item
    if extremes.count > 0 and not extremes.slides:
        if not is_before(extremes, item_at(extremes, 0), number, text, size):
            forget(extremes, item_at(extremes, 0))
            extremes.count = 0
        else:
            return
    while extremes.count > 0 and not is_before(extremes, item_at(extremes, extremes.count - 1), number, text, size):
        extremes.count -= 1
        forget(extremes, item_at(extremes, extremes.count))
    if extremes.count == extremes.capacity and not grow(extremes):
        extremes.is_full = True
        return
    item = item_at(extremes, extremes.count)
    item.position = position
    item.number = number
    item.size = size
    item.text = NULL
    if extremes.of_texts:
        extremes.bytes += size
        item.text = <uint8_t*> malloc(<size_t> size + 1)
        if item.text == NULL or (extremes.bytes > extremes.most and extremes.count > 0):
            free(item.text)
            item.text = NULL
            extremes.is_full = True
            return
        memcpy(item.text, text, <size_t> size)
    extremes.count += 1


cdef void extremes_drop(Extremes* extremes, int64_t before) noexcept nogil:
    """Forget values of rows before one."""
    while extremes.count > 0 and item_at(extremes, 0).position < before:
        forget(extremes, item_at(extremes, 0))
        extremes.first = (extremes.first + 1) & (extremes.capacity - 1)
        extremes.count -= 1
