"""Kernels of Parquet pages, for tests."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from engine.parquet.page_kernels cimport (
    PAGE_SLACK,
    Runs,
    crc,
    crc_begin,
    runs_begin,
    runs_bits,
    runs_read,
    runs_same,
    snappy,
    snappy_begin,
)
from engine.parquet.value_kernels cimport spread, spread_singly
from engine.records.bit_kernels cimport gather_bits, gather_singly, place_bits, place_singly

snappy_begin()


def uncompressed(bytes data not None, int64_t size):
    """Return what snappy has made of so many bytes, None where it is none."""
    source = bytearray(data + bytes(PAGE_SLACK))
    target = bytearray(size + PAGE_SLACK)
    cdef uint8_t[::1] source_view = source
    cdef uint8_t[::1] target_view = target
    cdef bint is_sound
    cdef int64_t source_size = len(data)
    with nogil:
        is_sound = snappy(&source_view[0], source_size, &target_view[0], size)
    return bytes(target[:size]) if is_sound else None


def uncompress_times(bytes data not None, int64_t size, int64_t times):
    """Do it many times, for a clock."""
    source = bytearray(data + bytes(PAGE_SLACK))
    target = bytearray(size + PAGE_SLACK)
    cdef uint8_t[::1] source_view = source
    cdef uint8_t[::1] target_view = target
    cdef int64_t source_size = len(data)
    with nogil:
        for _ in range(times):
            snappy(&source_view[0], source_size, &target_view[0], size)


def numbers_of_runs(bytes data not None, int width, list counts not None, bint asks_same=False):
    """Return values of runs, read in pieces; a negative piece is passed over. None: the runs end before.

    asks_same: of each piece it is asked first whether its values are one and the same.
    """
    cdef Runs runs
    cdef uint32_t same = 0
    padded = bytearray(data + bytes(PAGE_SLACK))
    cdef uint8_t[::1] view = padded
    cdef uint32_t[::1] target
    runs_begin(&runs, &view[0], &view[0] + len(data), width)
    values = []
    for count in counts:
        if count < 0:
            if not runs_read(&runs, -count, NULL):
                return None
            continue
        if asks_same and runs_same(&runs, count, &same):
            values += [same] * count
            continue
        block = bytearray(4 * count + PAGE_SLACK)
        target = memoryview(block).cast("I")
        if not runs_read(&runs, count, &target[0]):
            return None
        values += memoryview(block).cast("I")[:count].tolist()
    return values


def bits_of_runs(bytes data not None, int64_t count):
    """Return (how many are 1, the values) of runs of one bit; None: the runs end before."""
    cdef Runs runs
    padded = bytearray(data + bytes(PAGE_SLACK))
    cdef uint8_t[::1] view = padded
    words = bytearray((count // 64 + 2) * 8)
    cdef uint64_t[::1] target = memoryview(words).cast("Q")
    runs_begin(&runs, &view[0], &view[0] + len(data), 1)
    ones = runs_bits(&runs, count, &target[0])
    return None if ones < 0 else (ones, [(words[i >> 3] >> (i & 7)) & 1 for i in range(count)])


def checksum(bytes data not None):
    """Return the checksum of bytes."""
    crc_begin()
    return crc(data, len(data))


def gathered_bits(uint64_t bits, uint64_t wanted):
    """Return the bits of a word at the places of another one's, found both ways."""
    return gather_bits(bits, wanted), gather_singly(bits, wanted)


def placed_bits(uint64_t bits, uint64_t wanted):
    """Return the lowest bits of a word at the places of another one's, found both ways."""
    return place_bits(bits, wanted), place_singly(bits, wanted)


def spread_values(bytes values not None, int width, int64_t rows, list words not None):
    """Return values over rows of which some are null, spread both ways."""
    source = bytearray(values + bytes(PAGE_SLACK))
    valid = bytearray(b"".join(word.to_bytes(8, "little") for word in words))
    cdef uint8_t[::1] source_view = source
    cdef uint64_t[::1] valid_view = memoryview(valid).cast("Q")
    cdef uint8_t[::1] target
    found = []
    for is_single in (False, True):
        made = bytearray(b"\xee" * (rows * width + PAGE_SLACK))
        target = made
        if is_single:
            spread_singly(&source_view[0], width, rows, &valid_view[0], &target[0])
        else:
            spread(&source_view[0], width, rows, &valid_view[0], &target[0])
        found.append(bytes(made[: rows * width]))
    return found
