"""Channel selectors: which consumer gets a row, decided for a whole batch without the GIL.

    selector = selector_for(spec, schema, channel_count, subtask_index)     or a class below
    select(batch, channels)       from kernels: one uint32 per row
    channels_of(batch)            from Python (tests, explain): a list

    class              prints      channel of a row                              pointwise   mappers up / down
    GlobalSelector     GLOBAL      0                                             no          ARBITRARY FIRST
    ShuffleSelector    SHUFFLE     random, uniform (xorshift, seedable)          no          ARBITRARY ROUND_ROBIN
    RebalanceSelector  REBALANCE   random start, then the next one               no          ARBITRARY ROUND_ROBIN
    RescaleSelector    RESCALE     0, then the next one                          yes         UNSUPPORTED UNSUPPORTED
    BroadcastSelector  BROADCAST   all: select raises                            no          UNSUPPORTED UNSUPPORTED
    ForwardSelector    FORWARD     0                                             yes         UNSUPPORTED UNSUPPORTED
    KeyGroupSelector   KEYGROUP    Flink's key group, operator of the group      no          ARBITRARY RANGE
    CustomSelector     CUSTOM      a Python function of key and channel count    no          ARBITRARY FULL
    HashSelector       HASH        high half of the 64-bit row hash              no          ARBITRARY FULL
    RangeSelector      RANGE       number of bounds below or equal to the key    no          ARBITRARY FULL

Two selectors are equal when class and channel count are. ``copy`` gives one with its own position, for another writer.
HASH uses bits 63..32 of the hash only: join tables and recursion use the others. ``spread_nulls`` sends rows with a null
key, which match nothing, to all channels in turn. RANGE: bounds are sorted key rows, one fewer than channels; equal keys
share a channel.

Source: Flink's StreamPartitioner and its subclasses, ChannelSelector; HASH and RANGE are ours.
"""

import secrets
from enum import StrEnum

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from engine.errors import DataError, NotYetSupportedError, PlanError, SchemaError
from engine.graph.sort_key import SortKey
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.comparator cimport RowComparator
from engine.records.hashing cimport hash_batch, null_keys_of_batch
from engine.records.key_group cimport KeyGroupAssigner, operator_of_group
from engine.records.row_codec cimport RowCodec


cdef int32_t MAX_KEY_GROUPS = 1 << 15


class SubtaskStateMapper(StrEnum):
    """How state of subtasks is spread when the parallelism changes: named for completeness, kept per selector."""

    ARBITRARY = "ARBITRARY"
    FIRST = "FIRST"
    FULL = "FULL"
    RANGE = "RANGE"
    ROUND_ROBIN = "ROUND_ROBIN"
    UNSUPPORTED = "UNSUPPORTED"


cdef class ChannelSelector:
    """Base: equality, copy, names.

    Args:
        channel_count: channels of the output, 1 or more.
    """

    name = ""
    is_pointwise = False
    is_broadcast = False
    upstream_mapper = SubtaskStateMapper.ARBITRARY
    downstream_mapper = SubtaskStateMapper.FULL

    def __cinit__(self, int32_t channel_count, *_arguments, **_options):
        if channel_count < 1:
            raise PlanError(f"an output has at least one channel, not {channel_count}")
        self.channel_count = channel_count

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        raise NotImplementedError

    def channels_of(self, batch not None):
        """Return the channel of every row of a pyarrow.RecordBatch as a list of int."""
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        cdef uint32_t* channels = <uint32_t*> malloc((<size_t> opened.row_count + 1) * sizeof(uint32_t))
        cdef int64_t row
        if channels == NULL:
            raise MemoryError
        try:
            self.select(opened, channels)
            return [channels[row] for row in range(opened.row_count)]
        finally:
            free(channels)

    def copy(self):
        """Return a selector of the same class and channel count with a position of its own."""
        return type(self)(self.channel_count)

    def __eq__(self, other):
        return type(self) is type(other) and self.channel_count == (<ChannelSelector> other).channel_count

    def __hash__(self):
        return hash((type(self), self.channel_count))

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"<{self.name} selector, {self.channel_count} channels>"


# ------------------------------------------------------------------------------------------------------ without keys


cdef class GlobalSelector(ChannelSelector):
    """Every row to channel 0."""

    name = "GLOBAL"
    downstream_mapper = SubtaskStateMapper.FIRST

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        memset(channels, 0, <size_t> batch.row_count * sizeof(uint32_t))
        return 0


cdef class ForwardSelector(ChannelSelector):
    """Every row to the one channel there is."""

    name = "FORWARD"
    is_pointwise = True
    upstream_mapper = SubtaskStateMapper.UNSUPPORTED
    downstream_mapper = SubtaskStateMapper.UNSUPPORTED

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        memset(channels, 0, <size_t> batch.row_count * sizeof(uint32_t))
        return 0


cdef class BroadcastSelector(ChannelSelector):
    """Every row to every channel; there is nothing to select."""

    name = "BROADCAST"
    is_broadcast = True
    upstream_mapper = SubtaskStateMapper.UNSUPPORTED
    downstream_mapper = SubtaskStateMapper.UNSUPPORTED

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        raise NotImplementedError("a broadcast has no channel to select: every row goes to all of them")


cdef class ShuffleSelector(ChannelSelector):
    """Every row to a random channel.

    Args:
        channel_count: channels of the output.
        seed: of the generator; random when None.
    """

    name = "SHUFFLE"
    downstream_mapper = SubtaskStateMapper.ROUND_ROBIN
    cdef uint64_t _state

    def __init__(self, int32_t channel_count, seed=None):
        self._state = mixed_seed(secrets.randbits(64) if seed is None else seed)

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        with nogil:
            self._state = random_channels(self._state, <uint64_t> self.channel_count, batch.row_count, channels)
        return 0


cdef class RebalanceSelector(ChannelSelector):
    """Rows to all channels in turn, from a random one on.

    Args:
        channel_count: channels of the output.
        seed: decides the first channel; random when None.
    """

    name = "REBALANCE"
    downstream_mapper = SubtaskStateMapper.ROUND_ROBIN
    cdef uint32_t _next

    def __init__(self, int32_t channel_count, seed=None):
        self._next = mixed_seed(secrets.randbits(64) if seed is None else seed) % <uint64_t> channel_count

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        with nogil:
            self._next = channels_in_turn(self._next, <uint32_t> self.channel_count, batch.row_count, channels)
        return 0


cdef class RescaleSelector(ChannelSelector):
    """Rows in turn to the channels of this subtask's own consumers, from the first on."""

    name = "RESCALE"
    is_pointwise = True
    upstream_mapper = SubtaskStateMapper.UNSUPPORTED
    downstream_mapper = SubtaskStateMapper.UNSUPPORTED
    cdef uint32_t _next

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        with nogil:
            self._next = channels_in_turn(self._next, <uint32_t> self.channel_count, batch.row_count, channels)
        return 0


# --------------------------------------------------------------------------------------------------------- with keys


cdef class KeySelector(ChannelSelector):
    """Base of those that look at key columns.

    Args:
        channel_count: channels of the output.
        schema: pyarrow.Schema of the rows.
        keys: column names, at least one.
    """

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
    """

    name = "HASH"
    cdef readonly bint spread_nulls
    cdef uint32_t _next

    def __init__(self, int32_t channel_count, schema, keys, bint spread_nulls=False):
        self.spread_nulls = spread_nulls

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        cdef size_t count = <size_t> batch.row_count
        cdef uint64_t* hashes = <uint64_t*> malloc((count + 1) * sizeof(uint64_t))
        cdef uint8_t* flags = <uint8_t*> malloc(count + 1) if self.spread_nulls else NULL
        if hashes == NULL or (self.spread_nulls and flags == NULL):
            free(hashes)
            free(flags)
            raise MemoryError
        with nogil:
            hash_batch(batch, self._columns, self._column_count, 0, batch.row_count, hashes)
            channels_of_hashes(hashes, <uint64_t> self.channel_count, batch.row_count, channels)
            if flags != NULL:
                if null_keys_of_batch(batch, self._columns, self._column_count, 0, batch.row_count, flags) > 0:
                    self._next = spread_flagged(flags, self._next, <uint32_t> self.channel_count, batch.row_count,
                                                channels)
            free(hashes)
            free(flags)
        return 0

    def copy(self):
        """Return a selector with the same keys."""
        return HashSelector(self.channel_count, self._schema, self.keys, self.spread_nulls)


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
        for row in range(batch.row_count):
            channels[row] = <uint32_t> operator_of_group(<int32_t> channels[row], self.max_parallelism,
                                                         self.channel_count)
        return 0

    def copy(self):
        """Return a selector with the same keys and number of groups."""
        return KeyGroupSelector(self.channel_count, self._schema, self.keys, self.max_parallelism)


cdef class CustomSelector(KeySelector):
    """Rows by a Python function, called for every row: the one selector that takes the GIL.

    Args:
        channel_count, schema, keys: as for KeySelector.
        function: (key, channel_count) -> channel; key is the value of the only key column, or a tuple of values.
    """

    name = "CUSTOM"
    cdef readonly object function

    def __init__(self, int32_t channel_count, schema, keys, function):
        self.function = function

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        cdef int64_t row = 0
        cdef list columns = [batch.batch.column(self._columns[index]).to_pylist()
                             for index in range(self._column_count)]
        for key in columns[0] if len(columns) == 1 else zip(*columns):
            channel = self.function(key, self.channel_count)
            if not isinstance(channel, int) or not 0 <= channel < self.channel_count:
                raise DataError(f"the partitioner function returned {channel!r} for the key {key!r}: an int from 0 to "
                                f"{self.channel_count - 1} is needed")
            channels[row] = channel
            row += 1
        return 0

    def copy(self):
        """Return a selector with the same keys and function."""
        return CustomSelector(self.channel_count, self._schema, self.keys, self.function)


cdef class RangeSelector(KeySelector):
    """Rows by the range of keys they fall into.

    Args:
        channel_count, schema, keys: as for KeySelector.
        bounds: pyarrow.RecordBatch of the key columns, ``channel_count - 1`` rows in key order: channel c gets the
            keys k with bounds[c - 1] <= k < bounds[c].
        descending: the order is descending.
    """

    name = "RANGE"
    cdef readonly object bounds
    cdef readonly bint descending
    cdef RowCodec _codec
    cdef RowComparator _comparator
    cdef uint8_t* _bound_bytes
    cdef uint8_t** _bound_rows

    def __init__(self, int32_t channel_count, schema, keys, bounds, bint descending=False):
        cdef ArrowBatch opened
        cdef uint32_t* sizes
        if bounds.num_rows != channel_count - 1:
            raise PlanError(f"{channel_count} ranges need {channel_count - 1} bounds, not {bounds.num_rows}")
        self.bounds = bounds
        self.descending = descending
        self._codec = RowCodec(bounds.schema)
        self._comparator = RowComparator(self._codec, [SortKey(key, descending) for key in self.keys])
        opened = ArrowBatch.open(bounds)
        self._codec.accept(opened)
        self._bound_rows = <uint8_t**> calloc(<size_t> channel_count, sizeof(uint8_t*))
        sizes = <uint32_t*> calloc(<size_t> channel_count, sizeof(uint32_t))
        try:
            self._bound_bytes = encode_all(self._codec, opened, sizes, self._bound_rows)
        finally:
            free(sizes)

    def __dealloc__(self):
        free(self._bound_bytes)
        free(self._bound_rows)

    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1:
        cdef ArrowBatch opened = ArrowBatch.open(batch.batch.select(list(self.keys)).cast(self.bounds.schema))
        cdef size_t count = <size_t> opened.row_count + 1
        cdef uint32_t* sizes = <uint32_t*> malloc(count * sizeof(uint32_t))
        cdef uint8_t** rows = <uint8_t**> malloc(count * sizeof(uint8_t*))
        cdef uint8_t* row_bytes = NULL
        try:
            if sizes == NULL or rows == NULL:
                raise MemoryError
            self._codec.accept(opened)
            row_bytes = encode_all(self._codec, opened, sizes, rows)
            with nogil:
                channels_of_ranges(self._comparator, self._bound_rows, self.channel_count - 1, rows, opened.row_count,
                                   channels)
        finally:
            free(sizes)
            free(rows)
            free(row_bytes)
        return 0

    def copy(self):
        """Return a selector with the same bounds."""
        return RangeSelector(self.channel_count, self._schema, self.keys, self.bounds, self.descending)


cdef uint8_t* encode_all(RowCodec codec, ArrowBatch batch, uint32_t* sizes, uint8_t** rows) except NULL:
    """Encode a whole batch into one allocation, which the caller frees."""
    cdef uint8_t* row_bytes
    cdef uint64_t total = 0
    cdef int64_t row
    with nogil:
        codec.measure(batch, 0, batch.row_count, sizes)
        for row in range(batch.row_count):
            total += sizes[row]
        row_bytes = <uint8_t*> malloc(total + 8)
        if row_bytes != NULL:
            total = 0
            for row in range(batch.row_count):
                rows[row] = row_bytes + total
                total += sizes[row]
            codec.encode(batch, 0, batch.row_count, sizes, rows)
    if row_bytes == NULL:
        raise MemoryError
    return row_bytes


# ------------------------------------------------------------------------------------------------------------ kernels


cdef inline uint64_t mixed_seed(seed) except? 0:
    """Return a state for xorshift: any seed will do, zero too."""
    cdef uint64_t state = (<uint64_t> (seed & 0xFFFFFFFFFFFFFFFF)) + 0x9E3779B97F4A7C15U
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9U
    state = (state ^ (state >> 27)) * 0x94D049BB133111EBU
    state ^= state >> 31
    return state if state != 0 else 1


cdef uint64_t random_channels(uint64_t state, uint64_t channel_count, int64_t count, uint32_t* channels) noexcept nogil:
    """xorshift64*; the high half scaled to the count. Returns the new state."""
    cdef int64_t row
    for row in range(count):
        state ^= state >> 12
        state ^= state << 25
        state ^= state >> 27
        channels[row] = <uint32_t> ((((state * 0x2545F4914F6CDD1DU) >> 32) * channel_count) >> 32)
    return state


cdef uint32_t channels_in_turn(uint32_t channel, uint32_t channel_count, int64_t count,
                               uint32_t* channels) noexcept nogil:
    """Returns the channel after the last one used."""
    cdef int64_t row
    for row in range(count):
        channels[row] = channel
        channel += 1
        if channel == channel_count:
            channel = 0
    return channel


cdef void channels_of_hashes(const uint64_t* hashes, uint64_t channel_count, int64_t count,
                             uint32_t* channels) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        channels[row] = <uint32_t> (((hashes[row] >> 32) * channel_count) >> 32)


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


cdef void channels_of_ranges(RowComparator comparator, uint8_t** bounds, int32_t bound_count, uint8_t** rows,
                             int64_t count, uint32_t* channels) noexcept nogil:
    """Binary search: the number of bounds that are below or equal to the row."""
    cdef int64_t row
    cdef int32_t low, high, middle
    for row in range(count):
        low = 0
        high = bound_count
        while low < high:
            middle = (low + high) >> 1
            if comparator.compare(bounds[middle], rows[row]) <= 0:
                low = middle + 1
            else:
                high = middle
        channels[row] = <uint32_t> low


# ----------------------------------------------------------------------------------------------------------- choosing


def selector_for(spec not None, schema, int32_t channel_count, int32_t subtask_index=0, function=None, bounds=None,
                 seed=None):
    """Return the selector of a PartitionerSpec.

    Args:
        spec: engine.graph.ship_strategy.PartitionerSpec.
        schema: pyarrow.Schema of the rows.
        channel_count: channels of this subtask's output.
        subtask_index: of the producer; mixed into ``seed``, so that producers start at different channels.
        function: of CUSTOM.
        bounds: of RANGE.
        seed: for tests: makes SHUFFLE and REBALANCE repeatable.

    Raises:
        PlanError: an unknown kind, or function or bounds missing.
        SchemaError: a key column that does not exist.
    """
    simple = SIMPLE_SELECTORS.get(spec.kind)
    if simple is not None:
        return simple(channel_count)
    if spec.kind in ("SHUFFLE", "REBALANCE"):
        own_seed = None if seed is None else seed + subtask_index
        return (ShuffleSelector if spec.kind == "SHUFFLE" else RebalanceSelector)(channel_count, own_seed)
    if spec.kind == "HASH":
        return HashSelector(channel_count, schema, spec.keys, spec.spread_nulls)
    if spec.kind == "KEYGROUP":
        return KeyGroupSelector(channel_count, schema, spec.keys, spec.max_parallelism)
    if spec.kind == "CUSTOM":
        if function is None:
            raise PlanError("custom partitioning needs its function")
        return CustomSelector(channel_count, schema, spec.keys, function)
    if spec.kind == "RANGE":
        if bounds is None:
            raise NotYetSupportedError("range partitioning without bounds")
        return RangeSelector(channel_count, schema, spec.keys, bounds)
    raise PlanError(f"unknown partitioner {spec.kind!r}")


SIMPLE_SELECTORS = {
    "GLOBAL": GlobalSelector,
    "FORWARD": ForwardSelector,
    "RESCALE": RescaleSelector,
    "BROADCAST": BroadcastSelector,
}
