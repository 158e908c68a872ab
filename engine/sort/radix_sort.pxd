# IndexEntry and the kernel that sorts them.
#
#     entry (16 bytes)   | prefix: uint64, first 8 bytes of the normalized key | row: address of the row |

from libc.stdint cimport int64_t, uint8_t, uint64_t

from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport Ties
from engine.sort.key_tail cimport KeyTail

cdef struct IndexEntry:
    uint64_t prefix     # unsigned order of prefixes = order of rows, as far as it reaches
    uint8_t* row        # start of the row, valid while its page is

# Sort entries in place, stable. scratch holds count entries. Rows of a prefix with ties are compared in full;
# those of a prefix that decides are not. tail: sorts ties that have its head in common, None: there is none.
cdef void sort_entries(IndexEntry* entries, IndexEntry* scratch, int64_t count, RowComparator comparator,
                       const Ties* ties, KeyTail tail) noexcept nogil
