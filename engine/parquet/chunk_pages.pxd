# Chunk: a column of a row group while its pages are read one after the other, by kernels without the GIL.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.parquet.delta_kernels cimport Deltas
from engine.parquet.fetched_bytes cimport Parts
from engine.parquet.page_header cimport PageHeader
from engine.parquet.page_kernels cimport Runs
from engine.parquet.page_rooms cimport Room

cdef enum ChunkStatus:
    CHUNK_OK = 0
    CHUNK_DAMAGED = 1           # a page is not what its header says
    CHUNK_ENDS = 2              # the pages end before the rows do
    CHUNK_CHECKSUM = 3
    CHUNK_UNKNOWN = 4           # an encoding that is not known here
    CHUNK_UNREADABLE = 5        # `error` is the system's
    CHUNK_NO_MEMORY = 6
    CHUNK_TOO_LARGE = 7         # texts of a batch do not fit into 32-bit offsets
    CHUNK_SEALED = 8            # the current page is compressed in a way that its owner must open: open_sealed

cdef enum Codec:
    CODEC_NONE = 0
    CODEC_SNAPPY = 1
    CODEC_OTHER = 2

# How stored values become those of Arrow.
cdef enum Shape:
    SHAPE_COPIED = 0            # as they are
    SHAPE_CONVERTED = 1         # integers, narrower or wider
    SHAPE_REVERSED = 2          # decimals with their highest byte first
    SHAPE_BITS = 3              # bools, a byte each until a batch is made
    SHAPE_TEXTS = 4             # bytes with their size before them
    SHAPE_CODES = 5             # such, as numbers of a dictionary

# How values lie in the current page.
cdef enum Mode:
    MODE_PLAIN = 0
    MODE_NUMBERS = 1            # of the dictionary
    MODE_RUNS = 2               # bools in runs
    MODE_ADDED = 3              # texts that have just been added to the dictionary, in their order
    MODE_DELTAS = 4             # integers, as differences

cdef enum:
    BLOCK_ROWS = 1024           # decoded at a time: what lies between steps stays in the cache
    BLOCK_WORDS = 18            # of bits of a block, and two more
    VALUE_BYTES_MAX = 64        # of a value of fixed width

# Room of a block, for all chunks of a reader.
cdef struct Scratch:
    uint32_t numbers[BLOCK_ROWS + 16]
    uint32_t kept_numbers[BLOCK_ROWS + 16]
    uint64_t mask[BLOCK_WORDS]
    uint64_t valid[BLOCK_WORDS]
    uint64_t dense_mask[BLOCK_WORDS]
    uint64_t kept_valid[BLOCK_WORDS]
    int32_t ends[BLOCK_ROWS + 16]
    uint8_t stored[BLOCK_ROWS * VALUE_BYTES_MAX + 64]
    uint8_t dense[BLOCK_ROWS * VALUE_BYTES_MAX + 64]

cdef struct Chunk:
    # what the footer says
    int descriptor
    const Parts* parts          # of a file that is in memory; NULL: it has a descriptor
    int64_t end                 # of its bytes in the file
    int64_t size_max            # no page is larger
    int32_t codec               # Codec
    int32_t shape               # Shape
    int32_t stored_width        # bytes of a stored value, where that is fixed
    int32_t width               # of one of Arrow's
    bint is_nullable
    bint is_integer             # stored as one
    int64_t window_bytes        # of the file that are read at a time
    Scratch* scratch
    # where it is
    int64_t position            # of the next header
    int64_t values_left         # of pages whose headers were not read
    int error
    Room window
    int64_t window_start, window_size
    # the current page
    PageHeader header
    int64_t page_position       # of its header
    int64_t payload             # of what follows
    bint is_open
    bint is_dictionary          # it is one, and not yet open
    int64_t rows_left           # of it, nulls too
    int32_t mode
    Room page
    const uint8_t* at           # of the next plain value
    const uint8_t* page_end
    int64_t bit                 # of the next plain bool
    uint32_t added              # number of the next added text
    Runs runs
    Deltas deltas
    Room valid                  # a bit a row
    int64_t row                 # of the page that comes next
    int64_t passed              # rows whose values were taken, or passed over
    int64_t null_count          # of the page
    # what is in a compressed page that its owner must open
    const uint8_t* sealed
    int64_t sealed_size, opened_size
    # the dictionary: values of Arrow's width, or texts and where each begins
    Room words, offsets
    int64_t dictionary_count
    # the batch that is made
    int64_t wanted, wanted_at   # rows of it, and those that are done
    const uint64_t* mask        # of these, NULL: all are kept
    int64_t kept
    int64_t kept_nulls
    uint8_t* target             # values of fixed width
    Room validity
    Room texts, ends
    int64_t texts_size

# Go to the next page with rows; its bytes are looked at when it is opened. A dictionary on the way is opened.
cdef int next_page(Chunk* chunk) noexcept nogil
# Read and open the current page. CHUNK_SEALED: open_sealed is to be called with what its owner has made of `sealed`.
cdef int open_page(Chunk* chunk) noexcept nogil
cdef int open_sealed(Chunk* chunk, const uint8_t* opened) noexcept nogil
# Stored values of fixed width as Arrow has them.
cdef void as_arrow_has(Chunk* chunk, const uint8_t* stored, int64_t count, uint8_t* target) noexcept nogil
# Forget the column and its place, keeping memory.
cdef void reset_chunk(Chunk* chunk) noexcept nogil
cdef void free_chunk(Chunk* chunk) noexcept nogil
# Offsets of texts as Arrow has them, of where each ends.
cdef void copy_offsets(const int32_t* ends, int64_t count, bint is_large, uint8_t* target) noexcept nogil
# Bools of a byte each as bits.
cdef void pack_bytes(const uint8_t* values, int64_t count, uint8_t* target) noexcept nogil
