# Rows of a chunk taken out of its pages.

from libc.stdint cimport int64_t, uint64_t

from engine.parquet.chunk_pages cimport Chunk

# Begin with a batch of rows of which those of a mask are kept (NULL: all), `kept` of them. Chunks of values of fixed
# width have a target already.
cdef int begin_rows(Chunk* chunk, int64_t rows, const uint64_t* mask, int64_t kept) noexcept nogil
# Take the rows; CHUNK_SEALED: called again, when the page is open, it goes on where it was.
cdef int take_rows(Chunk* chunk) noexcept nogil
# Rows that a mask keeps of some.
cdef int64_t count_mask(const uint64_t* mask, int64_t first, int64_t rows) noexcept nogil
