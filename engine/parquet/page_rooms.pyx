"""Rooms: memory of pages, kept for the columns that are read next.

    grow(room, size)       first from what is kept, else of the system; a room that has memory grows where it is
    give_back(room)        kept, as the latest of at most KEPT_MAX rooms of KEPT_BYTES together; the oldest ones go
    let_rooms_go()         where memory is short

A page takes a megabyte, which the system allocates empty and takes back when it is free: to have it touched anew for
each column of each query costs as much as to open the page. Sampled columns, and those of small files, are at their end
after a page or two.

Invariants: rooms of less than ROOM_MIN are not kept, nor those of more than an eighth of KEPT_BYTES; a room that is
given out has at most FIT_MAX times what was asked for.
Thread: any. A thread that does not get the lock at once asks the system.
Held by: tests/parquet/test_page_rooms.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove

from engine.parquet.page_kernels cimport PAGE_SLACK


cdef extern from *:
    """
    static char drey_rooms_taken;
    static inline int drey_enter_rooms(void) { return !__atomic_test_and_set(&drey_rooms_taken, __ATOMIC_ACQUIRE); }
    static inline void drey_leave_rooms(void) { __atomic_clear(&drey_rooms_taken, __ATOMIC_RELEASE); }
    """
    bint drey_enter_rooms() noexcept nogil
    void drey_leave_rooms() noexcept nogil


cdef enum:
    ROOM_MIN = 64 << 10
    KEPT_MAX = 64
    KEPT_BYTES = 16 << 20
    FIT_MAX = 4

#: the oldest one first; guarded by: drey_enter_rooms
cdef Room[KEPT_MAX] kept
cdef int32_t kept_count = 0
cdef int64_t kept_bytes = 0


cdef bint grow(Room* room, int64_t size) noexcept nogil:
    cdef uint8_t* data
    if room.data != NULL and size <= room.capacity:
        return True
    if room.data == NULL and size >= ROOM_MIN // FIT_MAX and take_kept(room, size):
        return True
    size = max(size, room.capacity + room.capacity // 2)
    data = <uint8_t*>realloc(room.data, <size_t>(size + PAGE_SLACK))
    if data == NULL:
        return False
    room.data, room.capacity = data, size
    return True


cdef void give_back(Room* room) noexcept nogil:
    global kept_count, kept_bytes
    if ROOM_MIN <= room.capacity <= KEPT_BYTES // 8 and drey_enter_rooms():
        while kept_count == KEPT_MAX or kept_bytes + room.capacity > KEPT_BYTES:
            free(kept[0].data)
            take_out(0)
        kept[kept_count] = room[0]
        kept_count += 1
        kept_bytes += room.capacity
        drey_leave_rooms()
    else:
        free(room.data)
    room.data, room.capacity = NULL, 0


cdef bint take_kept(Room* room, int64_t size) noexcept nogil:
    """Take the smallest of the rooms that are large enough, if it is not far too large."""
    cdef int32_t index
    cdef int32_t best = -1
    if not drey_enter_rooms():
        return False
    for index in range(kept_count):
        if size <= kept[index].capacity and (best < 0 or kept[index].capacity < kept[best].capacity):
            best = index
    if best >= 0 and kept[best].capacity <= size * FIT_MAX:
        room[0] = kept[best]
        take_out(best)
    else:
        best = -1
    drey_leave_rooms()
    return best >= 0


cdef void take_out(int32_t index) noexcept nogil:
    """Take a room off the list; the caller holds the lock."""
    global kept_count, kept_bytes
    kept_bytes -= kept[index].capacity
    kept_count -= 1
    memmove(&kept[index], &kept[index + 1], <size_t>(kept_count - index) * sizeof(Room))


def let_rooms_go():
    """Give all rooms that are kept to the system, unless another thread looks for one at this moment."""
    if drey_enter_rooms():
        while kept_count:
            free(kept[0].data)
            take_out(0)
        drey_leave_rooms()


def kept_rooms():
    """Return the sizes of the rooms that are kept, the oldest one first."""
    return [kept[index].capacity for index in range(kept_count)]
