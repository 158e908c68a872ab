# MergedTexts: one dictionary of texts for the columns of several row groups, each of which has its own.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from engine.parquet.page_rooms cimport Room

cdef struct MergedTexts:
    Room words, offsets         # texts, and where each begins and the last one ends
    int64_t count
    Room slots                  # of a hash table: number of a text + 1, 0: none
    int64_t slot_count          # a power of two
    Room numbers                # of a row group's texts among the merged ones

# Forget all texts, keeping memory.
cdef void begin_texts(MergedTexts* merged) noexcept nogil
# Add the texts of a row group that are not there, and find the number of each. False: there is no memory.
cdef bint merge_texts(MergedTexts* merged, const uint8_t* words, const uint32_t* offsets, int64_t count) noexcept nogil
# Replace codes of that row group by merged ones; a code beyond its texts is that of a null.
cdef void renumber(const MergedTexts* merged, int64_t count, int32_t* codes, int64_t rows) noexcept nogil
cdef void free_texts(MergedTexts* merged) noexcept nogil
