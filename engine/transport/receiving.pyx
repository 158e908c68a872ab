"""Receiving frames of one connection into the buffers of its channels, without the GIL.

    reader   header ─► channel ─► a free buffer of it ─► payload received into it ─► filled ─► gate's ready queue
    writer   channels with unannounced credit ─► AddCredit, as many as there are with one call

    ring unused ──take──► in flight ──received, checked──► ring filled ──poll──► consumer
         ▲                    └── released meanwhile: orphan                        │
         └──────────────────────────── add_buffer: credit to announce ◄─────────────┘

``client_connection`` has the classes around this and handles what needs Python: errors, orphans, the end. Rings always
have room for all buffers of their channel and the end, so nothing is allocated here. With a payload the header behind
it is received as well, if it is there already: one call to the system for each frame.

Source: Flink's CreditBasedPartitionRequestClientHandler.

Held by: tests/transport/test_fuzz.py
"""

from libc.errno cimport errno
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset
from posix.uio cimport iovec

from engine.transport.credit cimport (
    CREDIT_MAX, CREDIT_OK, CreditStatus, receiver_announce, receiver_is_due, receiver_on_frame,
)
from engine.transport.frames cimport (
    DATA_END, FRAME_ADD_CREDIT, FRAME_BACKLOG_ANNOUNCEMENT, FRAME_BUFFER_RESPONSE, FRAME_HEADER_BYTES, FrameHeader,
    begin_frame, check_payload, receive_header, seal_frame,
)
from engine.exchange.monitor cimport monitor_lock, monitor_unlock
from engine.exchange.ready_queue cimport POP_CLOSED, ReadyState, ready_pop, ready_push
from engine.transport.wire cimport WIRE_OK, WireStatus, receive_ahead, receive_bytes, send_parts

cdef enum:
    CREDITS_AT_ONCE = 32            # AddCredit frames of one call to the system


cdef void ring_put(SlotRing* ring, ReceiverSlot slot) noexcept nogil:
    ring.slots[(ring.head + ring.count) % ring.capacity] = slot
    ring.count += 1


cdef ReceiverSlot ring_take(SlotRing* ring) noexcept nogil:
    cdef ReceiverSlot slot = ring.slots[ring.head]
    ring.head = (ring.head + 1) % ring.capacity
    ring.count -= 1
    return slot


cdef ReceiverSlot* ring_move(SlotRing* ring, ReceiverSlot* slots, int32_t capacity) noexcept nogil:
    """Move to a larger array; returns the old one."""
    cdef ReceiverSlot* old = ring.slots
    cdef int32_t position
    for position in range(ring.count):
        slots[position] = old[(ring.head + position) % ring.capacity]
    ring.slots = slots
    ring.capacity = capacity
    ring.head = 0
    return old


cdef WireStatus send_sealed(ReceiverTable* table, FrameHeader* header, const uint8_t* payload) noexcept nogil:
    cdef iovec[2] parts
    cdef WireStatus status
    parts[0].iov_base = header
    parts[0].iov_len = FRAME_HEADER_BYTES
    parts[1].iov_base = <void*> payload
    parts[1].iov_len = header.size
    monitor_lock(&table.send_lock)
    status = send_parts(&table.wire, parts, 2 if header.size > 0 else 1)
    monitor_unlock(&table.send_lock)
    return status


cdef WireStatus write_credits(ReceiverTable* table) noexcept nogil:
    cdef FrameHeader[CREDITS_AT_ONCE] headers
    cdef iovec part
    cdef ReceiverState* state
    cdef int32_t number, count, credit
    cdef WireStatus status
    while True:
        count = 0
        number = ready_pop(table.outgoing, -1)
        while number >= 0:
            monitor_lock(&table.lock)
            state = table.states[number] if number < table.capacity else NULL
            credit = receiver_announce(&state.credit) if state != NULL and state.phase == CHANNEL_READING else 0
            monitor_unlock(&table.lock)
            if credit > 0:
                begin_frame(&headers[count], FRAME_ADD_CREDIT, <uint32_t> number, 0)
                headers[count].amount = <uint32_t> credit
                seal_frame(&headers[count], NULL)
                count += 1
                if count == CREDITS_AT_ONCE:
                    break
            number = ready_pop(table.outgoing, 0)
        if number == POP_CLOSED:
            return WIRE_OK
        if count > 0:
            part.iov_base = headers
            part.iov_len = <size_t> count * FRAME_HEADER_BYTES
            monitor_lock(&table.send_lock)
            status = send_parts(&table.wire, &part, 1)
            monitor_unlock(&table.send_lock)
            if status != WIRE_OK:
                table.error_number = errno
                return status


cdef ReadOutcome read_frames(ReceiverTable* table, WireStatus* wire, CreditStatus* credit) noexcept nogil:
    """Receive data until there is something that needs Python."""
    cdef FrameHeader* header = &table.header
    cdef ReadOutcome outcome
    while True:
        header[0] = table.next_header
        wire[0] = receive_header(&table.wire, header, table.header_have)
        table.header_have = 0
        if wire[0] != WIRE_OK:
            table.error_number = errno
            return READ_BROKEN
        if header.type == FRAME_BUFFER_RESPONSE:
            outcome = receive_data(table, header, wire, credit)
            if outcome != READ_CONTROL:
                return outcome
        elif header.type == FRAME_BACKLOG_ANNOUNCEMENT:
            note_backlog(table, header)
        else:
            wire[0] = receive_bytes(&table.wire, table.scratch, header.size)
            if wire[0] == WIRE_OK:
                wire[0] = check_payload(header, table.scratch)
            if wire[0] != WIRE_OK:
                table.error_number = errno
                return READ_BROKEN
            return READ_CONTROL


cdef inline int32_t backlog_of(const FrameHeader* header) noexcept nogil:
    return <int32_t> min(header.amount, <uint32_t> CREDIT_MAX)


cdef void note_backlog(ReceiverTable* table, const FrameHeader* header) noexcept nogil:
    cdef ReceiverState* state
    monitor_lock(&table.lock)
    state = table.states[header.channel] if header.channel < <uint32_t> table.capacity else NULL
    if state != NULL and state.phase == CHANNEL_READING:
        state.credit.backlog = backlog_of(header)
        ready_push(state.ready, state.ready_channel)
    monitor_unlock(&table.lock)


cdef ReadOutcome receive_data(
    ReceiverTable* table, FrameHeader* header, WireStatus* wire, CreditStatus* credit
) noexcept nogil:
    """Receive the payload of a BufferResponse into a buffer of its channel; READ_CONTROL: go on."""
    cdef ReceiverState* state
    cdef ReceiverSlot slot
    cdef bint is_end = header.kind == DATA_END
    cdef bint is_released
    monitor_lock(&table.lock)
    state = table.states[header.channel] if header.channel < <uint32_t> table.capacity else NULL
    if state == NULL or header.kind > DATA_END or (is_end and header.size > 0) or state.identity != header.identity:
        monitor_unlock(&table.lock)
        return READ_STRANGE
    credit[0] = receiver_on_frame(&state.credit, header.sequence, is_end, backlog_of(header))
    if credit[0] != CREDIT_OK:
        monitor_unlock(&table.lock)
        return READ_CREDIT
    is_released = state.phase == CHANNEL_RELEASED
    memset(&slot, 0, sizeof(ReceiverSlot))
    if is_end:
        if not is_released:
            slot.kind = DATA_END
            ring_put(&state.filled, slot)
            state.phase = CHANNEL_ENDED
            ready_push(state.ready, state.ready_channel)
        state.has_last_frame = True
    elif not is_released:
        if state.phase != CHANNEL_READING or state.unused.count == 0:
            monitor_unlock(&table.lock)
            return READ_STRANGE
        if header.size > <uint32_t> state.unused.slots[state.unused.head].capacity:
            monitor_unlock(&table.lock)
            return READ_STRANGE
        state.in_flight = ring_take(&state.unused)
        state.is_receiving = True
        slot = state.in_flight
        if receiver_is_due(&state.credit):
            ready_push(table.outgoing, <int32_t> header.channel)
    monitor_unlock(&table.lock)
    if is_end:
        return READ_CONTROL
    if is_released:
        wire[0] = throw_away(table, header.size)
        if wire[0] != WIRE_OK:
            table.error_number = errno
            return READ_BROKEN
        return READ_CONTROL
    wire[0] = receive_ahead(&table.wire, slot.data, header.size, <uint8_t*> &table.next_header,
                            FRAME_HEADER_BYTES, &table.header_have)
    table.error_number = errno
    if wire[0] == WIRE_OK:
        wire[0] = check_payload(header, slot.data)
    return file_slot(table, header, state, wire[0])


cdef ReadOutcome file_slot(
    ReceiverTable* table, const FrameHeader* header, ReceiverState* state, WireStatus status
) noexcept nogil:
    """Pass the received buffer to the consumer, or recycle it when it is not whole or not wanted any more."""
    cdef bint is_released
    monitor_lock(&table.lock)
    is_released = state.phase == CHANNEL_RELEASED
    if is_released:
        table.orphan = <int32_t> header.channel
    else:
        state.is_receiving = False
        if status == WIRE_OK:
            state.in_flight.size = <int32_t> header.size
            state.in_flight.kind = header.kind
            ring_put(&state.filled, state.in_flight)
            ready_push(state.ready, state.ready_channel)
        else:
            ring_put(&state.unused, state.in_flight)
    monitor_unlock(&table.lock)
    if status != WIRE_OK:
        return READ_BROKEN
    return READ_ORPHAN if is_released else READ_CONTROL


cdef WireStatus throw_away(ReceiverTable* table, int64_t size) noexcept nogil:
    cdef WireStatus status = WIRE_OK
    cdef int64_t piece
    while size > 0 and status == WIRE_OK:
        piece = min(size, <int64_t> SCRATCH_BYTES)
        status = receive_bytes(&table.wire, table.scratch, piece)
        size -= piece
    return status
