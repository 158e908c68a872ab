"""Channel selectors that look at key columns: HASH, KEYGROUP, CUSTOM.

    HashSelector       bits 63..32 of the 64-bit row hash, scaled to the channel count
    KeyGroupSelector   Flink's key group of the key and the operator of that group; null keys are refused
    CustomSelector     a column that a Python function made, in a worker process

HASH uses the high half only: join tables and recursion use the other bits. ``spread_nulls`` sends rows with a null key,
which match nothing, to all channels in turn. Heavy keys, known by their hashes, are split: on one side of a join their
rows are *spread* (the first one of each key to its home, the channel of its hash, then in turn), on the other side
*replicated* to all channels; ``divide`` takes those out of a batch, because a row has one channel here. All work
without the GIL.

Source: Flink's KeyGroupStreamPartitioner and CustomPartitionerWrapper; HASH is ours.

Held by: tests/exchange/test_channel_selector.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import pyarrow as pa

from engine.errors import DataError, IllegalTransitionError, PlanError, SchemaError
from engine.exchange.channel_selector cimport ChannelSelector
from engine.exchange.channel_selector import SubtaskStateMapper
from engine.records.arrow_functions import pc
from engine.records.kept_rows import kept_rows
from engine.records.arrow_batch cimport ArrowBatch, KIND_INT32
from engine.records.hashing cimport hash_batch, null_keys_of_batch
from engine.records.key_group cimport KeyGroupAssigner, operator_of_group

cdef enum:
    BLOCK_ROWS = 1024               # rows hashed at one time

cdef int32_t MAX_KEY_GROUPS = 1 << 15

cdef struct HashSet:                    # a few hashes
    uint64_t filter                     # bit b: some hash ends in the six bits b
    uint64_t* hashes
    int32_t count


cdef class KeySelector(ChannelSelector):
    """Base of those that look at key columns.

    Args:
        channel_count: channels of the output.
        schema: pyarrow.Schema of the rows.
        keys: column names, at least one.
    """

    cdef readonly tuple keys
    cdef object _schema
    cdef int32_t* _columns              # positions of the keys
    cdef int32_t _column_count

    def __cinit__(self, int32_t channel_count, schema, keys, *_arguments, **_options):
        cdef int32_t index
        self._schema = schema
        self.keys = tuple(keys)
        if not self.keys:
            raise PlanError(f"{type(self).name} partitioning needs at least one key column")
        self._column_count = <int32_t> len(self.keys)
        self._columns = <int32_t*> calloc(<size_t> self._column_count, sizeof(int32_t))
        if self._columns == NULL:
            raise MemoryError
        for index, key in enumerate(self.keys):
            self._columns[index] = schema.get_field_index(key)
            if self._columns[index] < 0:
                raise SchemaError(f"no column {key!r} to partition by; there are: {', '.join(schema.names)}")

    def __dealloc__(self):
        free(self._columns)

    def copy(self):
        """Return a selector of the same class, channel count and keys."""
        return type(self)(self.channel_count, self._schema, self.keys)


cdef class HashSelector(KeySelector):
    """Rows with equal keys to the same channel, by the high half of their hash.

    Args:
        channel_count, schema, keys: as for KeySelector.
        spread_nulls: rows with a null key go to all channels in turn.
        spread: hashes of heavy keys whose rows are spread.
        replicated: hashes of heavy keys whose rows ``divide`` gives for all channels; not among ``spread``.
    """

    name = "HASH"
    cdef readonly bint spread_nulls
    cdef readonly tuple spread
    cdef readonly tuple replicated
    cdef uint32_t _next
    cdef HashSet _spread
    cdef HashSet _replicated
    cdef uint8_t* _was_sent             # for each key of _spread: whether its first row has gone home

    def __init__(self, int32_t channel_count, schema, keys, bint spread_nulls=False, spread=(), replicated=()):
        self.spread_nulls = spread_nulls
        self.spread = tuple(spread)
        self.replicated = tuple(replicated)
        make_hash_set(&self._spread, self.spread)
        make_hash_set(&self._replicated, self.replicated)
        self._was_sent = <uint8_t*> calloc(len(self.spread) + 1, 1)
        if self._was_sent == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._spread.hashes)
        free(self._replicated.hashes)
        free(self._was_sent)

    @property
    def replicates(self):
        """Whether some rows go to all channels: ask ``divide`` first."""
        return self._replicated.count > 0

    def home_of(self, uint64_t key_hash):
        """Return the channel of a hash."""
        return ((key_hash >> 32) * <uint64_t> self.channel_count) >> 32

    def hashes_of(self, batch not None):
        """Return the hash of every row's key of a pyarrow.RecordBatch as a list of int."""
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        cdef uint64_t* hashes = self.hash_keys(opened)
        cdef int64_t row
        try:
            return [hashes[row] for row in range(opened.row_count)]
        finally:
            free(hashes)

    def divide(self, batch not None):
        """Return (rows for one channel each, rows for all channels) of a pyarrow.RecordBatch; None: there are none.

        Cost: one pass over the keys; rows are copied only when there are both.
        """
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        cdef int64_t count
        cdef int64_t total = opened.row_count
        cdef uint64_t* hashes = self.hash_keys(opened)
        cdef char* flags = <char*> malloc(<size_t> total + 1)
        try:
            if flags == NULL:
                raise MemoryError
            with nogil:
                count = flag_members(&self._replicated, hashes, total, flags)
            if count == 0:
                return batch, None
            if count == total:
                return None, batch
            buffer = pa.py_buffer(flags[:total])
        finally:
            free(hashes)
            free(flags)
        is_copied = pc.cast(pa.Array.from_buffers(pa.int8(), total, [None, buffer]), pa.bool_())
        return kept_rows(batch, pc.invert(is_copied)), kept_rows(batch, is_copied)

    cdef uint64_t* hash_keys(self, ArrowBatch batch) except NULL:
        """Return the hashes of all rows, which the caller frees."""
        cdef uint64_t* hashes = new_hashes(batch.row_count)
        with nogil:
            hash_batch(batch, self._columns, self._column_count, 0, batch.row_count, hashes)
        return hashes

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        cdef int64_t begin = 0
        cdef int64_t count
        with nogil:
            while begin < batch.row_count:
                count = min(<int64_t> BLOCK_ROWS, batch.row_count - begin)
                self.select_block(batch, begin, count, channels + begin)
                begin += count
        return 0

    # A block's hashes stay in the cache until they are channels.
    cdef void select_block(self, ArrowBatch batch, int64_t start, int64_t count, uint32_t* channels) noexcept nogil:
        cdef uint64_t hashes[BLOCK_ROWS]
        cdef uint8_t flags[BLOCK_ROWS]
        hash_batch(batch, self._columns, self._column_count, start, count, hashes)
        channels_of_hashes(hashes, <uint64_t> self.channel_count, count, channels)
        if self._spread.count > 0:
            self._next = spread_members(&self._spread, hashes, self._was_sent, self._next,
                                        <uint32_t> self.channel_count, count, channels)
        if self.spread_nulls:
            if null_keys_of_batch(batch, self._columns, self._column_count, start, count, flags) > 0:
                self._next = spread_flagged(flags, self._next, <uint32_t> self.channel_count, count, channels)

    def copy(self):
        """Return a selector with the same keys, which has sent nothing yet."""
        return HashSelector(self.channel_count, self._schema, self.keys, self.spread_nulls, self.spread,
                            self.replicated)


cdef class KeyGroupSelector(KeySelector):
    """Rows to the operator of their key group, exactly as in Flink; a null key raises DataError.

    Args:
        channel_count, schema, keys: as for KeySelector.
        max_parallelism: number of key groups, at least ``channel_count``, at most 32768.
    """

    name = "KEYGROUP"
    downstream_mapper = SubtaskStateMapper.RANGE
    cdef readonly int32_t max_parallelism
    cdef KeyGroupAssigner _assigner

    def __init__(self, int32_t channel_count, schema, keys, int32_t max_parallelism=128):
        self.configure(max_parallelism)

    def configure(self, int32_t max_parallelism):
        """Set the number of key groups.

        Raises:
            PlanError: fewer groups than channels, or more than 32768.
        """
        if not self.channel_count <= max_parallelism <= MAX_KEY_GROUPS:
            raise PlanError(f"{max_parallelism} key groups for {self.channel_count} channels: at least as many as "
                            f"channels and at most {MAX_KEY_GROUPS} are possible")
        self.max_parallelism = max_parallelism
        self._assigner = KeyGroupAssigner(self._schema, [self._columns[index] for index in range(self._column_count)],
                                          max_parallelism)

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        cdef int64_t row
        self._assigner.assign(batch, 0, batch.row_count, <int32_t*> channels)
        with nogil:
            for row in range(batch.row_count):
                channels[row] = <uint32_t> operator_of_group(<int32_t> channels[row], self.max_parallelism,
                                                             self.channel_count)
        return 0

    def copy(self):
        """Return a selector with the same keys and number of groups."""
        return KeyGroupSelector(self.channel_count, self._schema, self.keys, self.max_parallelism)


cdef class CustomSelector(ChannelSelector):
    """Rows by a column that says their channel; the column itself does not travel.

    The user's function made the column, in a worker process: no code of the user's runs here.

    Args:
        channel_count: channels of the output.
        column: name of an int32 column without nulls.
    """

    name = "CUSTOM"
    cdef readonly str column
    cdef ArrowBatch _channels           # the column of the batch that was taken apart last

    def __init__(self, int32_t channel_count, str column not None):
        self.column = column

    def travelling(self, batch not None):
        """Return a pyarrow.RecordBatch without its channel column, which the next ``select`` uses.

        Raises:
            DataError: a channel that is none, or null.
        """
        cdef const int32_t* values
        cdef int64_t bad
        position = batch.schema.get_field_index(self.column)
        self._channels = ArrowBatch.open(batch.select([position]))
        if self._channels.columns[0].kind != KIND_INT32 or self._channels.columns[0].null_count != 0:
            raise DataError(f"column {self.column!r} is to hold an int32 channel for every row")
        values = <const int32_t*> self._channels.columns[0].values + self._channels.columns[0].offset
        with nogil:
            bad = first_outside(values, self.channel_count, self._channels.row_count)
        if bad >= 0:
            raise DataError(f"channel {values[bad]} of row {bad}: there are {self.channel_count}, from 0")
        return batch.select([index for index in range(batch.num_columns) if index != position])

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        if self._channels is None or self._channels.row_count != batch.row_count:
            raise IllegalTransitionError("rows to be partitioned came without their channels")
        memcpy(channels, <const int32_t*> self._channels.columns[0].values + self._channels.columns[0].offset,
               <size_t> batch.row_count * sizeof(uint32_t))
        return 0

    def copy(self):
        """Return a selector of the same column."""
        return CustomSelector(self.channel_count, self.column)


# ------------------------------------------------------------------------------------------------------------ kernels


cdef int64_t first_outside(const int32_t* channels, int32_t channel_count, int64_t count) noexcept nogil:
    """Return the first row whose channel is none, or -1."""
    cdef int64_t row
    for row in range(count):
        if <uint32_t> channels[row] >= <uint32_t> channel_count:
            return row
    return -1


cdef uint64_t* new_hashes(int64_t count) except NULL:
    cdef uint64_t* hashes = <uint64_t*> malloc((<size_t> count + 1) * sizeof(uint64_t))
    if hashes == NULL:
        raise MemoryError
    return hashes


cdef void channels_of_hashes(const uint64_t* hashes, uint64_t channel_count, int64_t count,
                             uint32_t* channels) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        channels[row] = <uint32_t> (((hashes[row] >> 32) * channel_count) >> 32)


cdef int make_hash_set(HashSet* hash_set, hashes) except -1:
    """Fill a set that is all zeros; its owner frees ``hashes``."""
    cdef int32_t index
    hash_set.hashes = <uint64_t*> calloc(len(hashes) + 1, sizeof(uint64_t))
    if hash_set.hashes == NULL:
        raise MemoryError
    for index, hash in enumerate(hashes):
        hash_set.hashes[index] = hash
        hash_set.filter |= (<uint64_t> 1) << (hash_set.hashes[index] & 63)
    hash_set.count = <int32_t> len(hashes)
    return 0


cdef inline int32_t index_in_set(const HashSet* hash_set, uint64_t hash) noexcept nogil:
    """Return the position of a hash in the set, or -1. Sets are small and begin with the heaviest key."""
    cdef int32_t index
    if not (hash_set.filter >> (hash & 63)) & 1:
        return -1
    for index in range(hash_set.count):
        if hash_set.hashes[index] == hash:
            return index
    return -1


cdef int64_t flag_members(const HashSet* hash_set, const uint64_t* hashes, int64_t count, char* flags) noexcept nogil:
    """Set flags[row] to whether the row's hash is in the set. Returns how many are."""
    cdef int64_t row
    cdef int64_t found = 0
    cdef bint is_member
    for row in range(count):
        is_member = index_in_set(hash_set, hashes[row]) >= 0
        flags[row] = <char> is_member
        found += is_member
    return found


cdef uint32_t spread_members(const HashSet* hash_set, const uint64_t* hashes, uint8_t* was_sent, uint32_t channel,
                             uint32_t channel_count, int64_t count, uint32_t* channels) noexcept nogil:
    """Give rows of the set all channels in turn, but leave each key's first row where it is. Returns the next."""
    cdef int64_t row
    cdef int32_t index
    for row in range(count):
        index = index_in_set(hash_set, hashes[row])
        if index < 0:
            continue
        if not was_sent[index]:
            was_sent[index] = 1
            continue
        channels[row] = channel
        channel += 1
        if channel == channel_count:
            channel = 0
    return channel


cdef uint32_t spread_flagged(const uint8_t* flags, uint32_t channel, uint32_t channel_count, int64_t count,
                             uint32_t* channels) noexcept nogil:
    """Give flagged rows all channels in turn. Returns the channel after the last one used."""
    cdef int64_t row
    for row in range(count):
        if flags[row]:
            channels[row] = channel
            channel += 1
            if channel == channel_count:
                channel = 0
    return channel
