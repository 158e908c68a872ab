# Receiving, without the GIL: the state of a connection's channels and the two loops; see receiving.pyx.

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.transport.credit cimport CreditStatus, ReceiverCredit
from engine.transport.frames cimport FrameHeader
from engine.exchange.monitor cimport Monitor
from engine.exchange.ready_queue cimport ReadyState
from engine.transport.wire cimport Wire, WireStatus


cdef enum:
    SCRATCH_BYTES = 1 << 16
    CHANNELS_MAX = 1 << 16          # of one connection


cdef enum ReceiverPhase:
    CHANNEL_IDLE = 0                # nothing was requested, or it was not found
    CHANNEL_READING = 1
    CHANNEL_ENDED = 2               # the last frame has come: end or error
    CHANNEL_RELEASED = 3            # frames that still come are thrown away


cdef enum ReadOutcome:              # why the reader's kernel returns
    READ_BROKEN = 0                 # wire status tells
    READ_CONTROL = 1                # a frame that Python handles: header and payload are there
    READ_ORPHAN = 2                 # a channel was released while its buffer was received
    READ_CREDIT = 3                 # credit status tells
    READ_STRANGE = 4                # data for no channel, of another partition, or too large for its buffer


cdef struct ReceiverSlot:
    PyObject* segment               # MemorySegment, a reference that the slot owns; NULL for the end
    uint8_t* data
    int32_t capacity
    int32_t size
    uint8_t kind                    # DataKind


cdef struct SlotRing:
    ReceiverSlot* slots
    int32_t capacity
    int32_t head
    int32_t count


cdef struct ReceiverState:
    ReceiverCredit credit
    SlotRing unused                 # free buffers, announced or not
    SlotRing filled
    ReceiverSlot in_flight
    ReadyState* ready
    uint64_t identity
    int32_t ready_channel
    int32_t phase                   # ReceiverPhase
    bint is_receiving               # the reader fills in_flight
    bint has_last_frame             # the sender has nothing more to say on this channel number


cdef struct ReceiverTable:          # of one connection
    Wire wire
    Monitor lock                    # for channels and credits, held for some instructions
    Monitor send_lock
    ReadyState* outgoing            # channels with credit to announce
    ReceiverState** states          # [capacity], by channel number; NULL: none. Guarded by lock.
    int32_t capacity
    uint8_t* scratch                # payload of a control frame
    FrameHeader header              # the reader's
    FrameHeader next_header
    int64_t header_have             # bytes of next_header that came with the last payload
    int32_t orphan                  # channel number of the last READ_ORPHAN, -1: none
    int32_t error_number            # errno of a broken connection


# Rings: called with the table locked; the caller knows that there is room, or a slot.
cdef void ring_put(SlotRing* ring, ReceiverSlot slot) noexcept nogil
cdef ReceiverSlot ring_take(SlotRing* ring) noexcept nogil
# Move to a larger array; returns the old one.
cdef ReceiverSlot* ring_move(SlotRing* ring, ReceiverSlot* slots, int32_t capacity) noexcept nogil

cdef WireStatus send_sealed(ReceiverTable* table, FrameHeader* header, const uint8_t* payload) noexcept nogil
# Announce credits until `outgoing` is closed or the connection breaks.
cdef WireStatus write_credits(ReceiverTable* table) noexcept nogil
# Receive data until there is something that needs Python.
cdef ReadOutcome read_frames(ReceiverTable* table, WireStatus* wire, CreditStatus* credit) noexcept nogil
