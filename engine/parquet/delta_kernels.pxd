# Integers of a page that are stored as differences: DELTA_BINARY_PACKED.
#
#   page    values in a block, miniblocks in a block, values in the page (varints), first value (zigzag)
#   block   least difference (zigzag), a width for each miniblock (a byte each), miniblocks
#   miniblock   differences less the least one, `width` bits each, the first one in the lowest bits
#
# Sums wrap around: what comes out are the lowest 32 or 64 bits, whatever room a writer took for differences. DuckDB
# takes 64 bits for those of INT32, which Parquet does not allow and Arrow's decoder ends at.
#
# As in page_kernels, buffers may be read PAGE_SLACK bytes beyond their end.
#
# Source: parquet-format, "Delta Encoding".

from libc.stdint cimport int32_t, int64_t, uint8_t

# for what the kernels below are written with
from engine.records.byte_kernels cimport load64

cdef extern from *:
    """
    typedef struct {
        const uint8_t* at;          /* of the next miniblock, or the next block */
        const uint8_t* end;
        const uint8_t* widths;      /* of the current block */
        const uint8_t* packed;      /* the miniblock read now */
        uint64_t value;             /* the last one */
        uint64_t least;             /* difference of the block */
        int64_t left;               /* values of the page, behind those that were read */
        int64_t size;               /* values of a miniblock */
        int64_t index, mini_left;   /* of the current miniblock */
        int64_t minis, mini;        /* in a block; the next one, `minis`: of another block */
        int32_t width, is_begun;    /* is_begun: the first value, which is in the head, was read */
    } drey_deltas;

    /* The next varint; 0: there is none. */
    static int drey_varint(drey_deltas* deltas, uint64_t* value) {
        uint8_t byte = 0x80;
        *value = 0;
        for (int shift = 0; byte & 0x80; shift += 7) {
            if (deltas->at >= deltas->end || shift > 63) return 0;
            byte = *deltas->at++;
            *value |= (uint64_t)(byte & 0x7F) << shift;
        }
        return 1;
    }
    static inline uint64_t drey_zigzag(uint64_t value) { return (value >> 1) ^ (0 - (value & 1)); }

    static int drey_deltas_begin(drey_deltas* deltas, const uint8_t* at, const uint8_t* end) {
        uint64_t values, minis, count, first;
        memset(deltas, 0, sizeof *deltas);
        deltas->at = at, deltas->end = end;
        if (!drey_varint(deltas, &values) || !drey_varint(deltas, &minis) || !drey_varint(deltas, &count)
            || !drey_varint(deltas, &first)) return 0;
        if (minis == 0 || minis > values || values > (1 << 24) || values % (minis * 8)) return 0;
        if (count > (1ULL << 31)) return 0;
        deltas->size = (int64_t)(values / minis), deltas->minis = deltas->mini = (int64_t)minis;
        deltas->left = (int64_t)count, deltas->value = drey_zigzag(first);
        return 1;
    }

    /* Go to the next miniblock. 0: there is none. */
    static int drey_deltas_open(drey_deltas* deltas) {
        if (deltas->mini == deltas->minis) {
            uint64_t least;
            if (!drey_varint(deltas, &least) || deltas->end - deltas->at < deltas->minis) return 0;
            deltas->least = drey_zigzag(least);
            deltas->widths = deltas->at, deltas->at += deltas->minis, deltas->mini = 0;
        }
        deltas->width = deltas->widths[deltas->mini++];
        deltas->packed = deltas->at, deltas->index = 0, deltas->mini_left = deltas->size;
        const int64_t values = deltas->left < deltas->size ? deltas->left : deltas->size;
        const int64_t bytes = (deltas->size * deltas->width) >> 3, room = deltas->end - deltas->at;
        if (deltas->width > 64 || ((values * deltas->width + 7) >> 3) > room) return 0;
        deltas->at += bytes < room ? bytes : room;      /* the last one may be cut short */
        return 1;
    }

    static inline uint64_t drey_delta_at(const uint8_t* packed, uint64_t bit, int32_t width, uint64_t mask) {
        const uint8_t* const from = packed + (bit >> 3);
        const int shift = (int)(bit & 7);
        uint64_t found = drey_load64(from) >> shift;
        if (shift + width > 64) found |= (uint64_t)from[8] << (64 - shift);
        return found & mask;
    }

    static inline void drey_delta_put(uint8_t* target, int64_t place, int32_t bytes, uint64_t value) {
        if (bytes == 4) drey_store32(target + place * 4, (uint32_t)value);
        else drey_store64(target + place * 8, value);
    }

    static int drey_deltas_read(drey_deltas* deltas, int64_t count, int32_t bytes, uint8_t* target) {
        int64_t done = 0;
        if (count > deltas->left) return 0;
        if (count && !deltas->is_begun) {
            deltas->is_begun = 1, deltas->left--;
            if (target) drey_delta_put(target, 0, bytes, deltas->value);
            done = 1;
        }
        while (done < count) {
            if (deltas->mini_left == 0 && !drey_deltas_open(deltas)) return 0;
            const int64_t size = count - done < deltas->mini_left ? count - done : deltas->mini_left;
            const int32_t width = deltas->width;
            const uint64_t least = deltas->least, mask = width < 64 ? (1ULL << width) - 1 : ~0ULL;
            uint64_t value = deltas->value, bit = (uint64_t)deltas->index * (uint64_t)width;
            for (int64_t place = 0; place < size; place++, bit += (uint64_t)width) {
                value += least + drey_delta_at(deltas->packed, bit, width, mask);
                if (target) drey_delta_put(target, done + place, bytes, value);
            }
            deltas->value = value;
            deltas->index += size, deltas->mini_left -= size, deltas->left -= size, done += size;
        }
        return 1;
    }
    """
    ctypedef struct Deltas "drey_deltas":
        int64_t left

    # Begin with what is between two places. False: there is no head.
    bint deltas_begin "drey_deltas_begin" (Deltas*, const uint8_t* at, const uint8_t* end) noexcept nogil
    # The next values, of 4 or 8 bytes; target NULL: they are passed over. False: there are not so many.
    bint deltas_read "drey_deltas_read" (Deltas*, int64_t count, int32_t bytes, uint8_t* target) noexcept nogil
