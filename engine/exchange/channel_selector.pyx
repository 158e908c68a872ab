"""Channel selectors: which consumer gets a row, decided for a whole batch without the GIL.

    selector = selector_for(spec, schema, channel_count, subtask_index)     (selector_choice) or a class
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
    CustomSelector     CUSTOM      what a column says (a Python function made it) no         ARBITRARY FULL
    HashSelector       HASH        high half of the 64-bit row hash              no          ARBITRARY FULL

Two selectors are equal when class and channel count are. ``copy`` gives one with its own position, for another writer.
Those without keys are here, those with keys in ``key_selector``.

Rows by ranges of keys have no selector: producers store sorted runs, and each consumer reads its range of every run
(``sorted_partition``), so that the bounds are chosen when all keys are known.

Source: Flink's StreamPartitioner and its subclasses, ChannelSelector; HASH is ours.
"""

import os
from enum import StrEnum

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from engine.errors import PlanError
from engine.records.arrow_batch cimport ArrowBatch


class SubtaskStateMapper(StrEnum):
    """The distribution of subtasks' state when the parallelism changes: named for completeness, kept per selector."""

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
    replicates = False          # some rows go to all channels: ``divide`` takes them out of a batch
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

    def travelling(self, batch not None):
        """Return the part of a pyarrow.RecordBatch to send, which is selected from next: all of it, but for CUSTOM."""
        return batch

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
        self._state = mixed_seed(int.from_bytes(os.urandom(8), "little") if seed is None else seed)

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
        seed = int.from_bytes(os.urandom(8), "little") if seed is None else seed
        self._next = mixed_seed(seed) % <uint64_t> channel_count

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
