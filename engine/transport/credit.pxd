# Credits of one channel between two processes: see credit.pyx for the protocol. Kernels for the holder of the lock.

from libc.stdint cimport int32_t, uint32_t


cdef enum CreditStatus:
    CREDIT_OK = 0
    CREDIT_SEQUENCE_GAP = 1         # a frame was lost, doubled or is another channel's
    CREDIT_NOT_GRANTED = 2          # data without a credit for it
    CREDIT_OVERFLOW = 3             # more credits than any receiver has buffers


cdef enum:
    CREDIT_MAX = 1 << 20            # credits that a sender may hold


cdef struct SenderCredit:
    int32_t credit                  # data frames that may be sent
    uint32_t sequence               # of the next frame, data or event
    bint is_backlog_announced       # since the last frame or credit: once is enough


cdef struct ReceiverCredit:
    uint32_t sequence               # that the next frame must have
    int32_t announced               # free buffers that the sender may fill
    int32_t unannounced             # free buffers that it has not been told of
    int32_t exclusive               # free buffers to have also when the sender has nothing
    int32_t backlog                 # data frames that the sender has ready, as it said last


cdef inline void sender_begin(SenderCredit* sender, int32_t credit) noexcept nogil:
    sender.credit = credit
    sender.sequence = 0
    sender.is_backlog_announced = False


cdef inline CreditStatus sender_add_credit(SenderCredit* sender, uint32_t credit) noexcept nogil:
    if credit == 0 or credit > <uint32_t> (CREDIT_MAX - sender.credit):
        return CREDIT_OVERFLOW
    sender.credit += <int32_t> credit
    sender.is_backlog_announced = False
    return CREDIT_OK


cdef inline bint sender_may_send(const SenderCredit* sender, bint is_event) noexcept nogil:
    return is_event or sender.credit > 0


# The sequence number of the frame that is sent now; caller has asked sender_may_send.
cdef inline uint32_t sender_next(SenderCredit* sender, bint is_event) noexcept nogil:
    cdef uint32_t sequence = sender.sequence
    sender.sequence += 1
    if not is_event:
        sender.credit -= 1
        sender.is_backlog_announced = False
    return sequence


# Whether to send a BacklogAnnouncement now; counts it as sent.
cdef inline bint sender_announces(SenderCredit* sender, int32_t backlog) noexcept nogil:
    if backlog == 0 or sender.credit > 0 or sender.is_backlog_announced:
        return False
    sender.is_backlog_announced = True
    return True


# `free_count` buffers are there; all of them are the initial credit of the request.
cdef inline void receiver_begin(ReceiverCredit* receiver, int32_t free_count, int32_t exclusive) noexcept nogil:
    receiver.sequence = 0
    receiver.announced = free_count
    receiver.unannounced = 0
    receiver.exclusive = exclusive
    receiver.backlog = 0


cdef inline int32_t receiver_free(const ReceiverCredit* receiver) noexcept nogil:
    return receiver.announced + receiver.unannounced


# Buffers to have beyond the free ones.
cdef inline int32_t receiver_wanted(const ReceiverCredit* receiver) noexcept nogil:
    return max(0, receiver.exclusive + receiver.backlog - receiver_free(receiver))


# An AddCredit has to be sent, which takes along what is free by then: at least as many buffers as the sender may still
# fill. To be asked when a buffer more is free, and when a frame has come.
cdef inline bint receiver_is_due(const ReceiverCredit* receiver) noexcept nogil:
    return receiver.unannounced > 0 and receiver.unannounced >= receiver.announced


# A buffer more is free.
cdef inline void receiver_add_buffer(ReceiverCredit* receiver) noexcept nogil:
    receiver.unannounced += 1


# The credits of the AddCredit that is sent now.
cdef inline int32_t receiver_announce(ReceiverCredit* receiver) noexcept nogil:
    cdef int32_t credit = receiver.unannounced
    receiver.announced += credit
    receiver.unannounced = 0
    return credit


cdef inline CreditStatus receiver_on_frame(
    ReceiverCredit* receiver, uint32_t sequence, bint is_event, int32_t backlog
) noexcept nogil:
    if sequence != receiver.sequence:
        return CREDIT_SEQUENCE_GAP
    if not is_event:
        if receiver.announced == 0:
            return CREDIT_NOT_GRANTED
        receiver.announced -= 1
    receiver.sequence += 1
    receiver.backlog = backlog
    return CREDIT_OK

cdef str credit_text(CreditStatus status)
