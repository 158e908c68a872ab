"""Both ends of one channel's credits, driven from Python. Test-only."""

from libc.stdint cimport int32_t

from engine.transport.credit cimport (
    ReceiverCredit, SenderCredit, receiver_add_buffer, receiver_announce, receiver_begin, receiver_free,
    receiver_is_due, receiver_on_frame, receiver_wanted, sender_add_credit, sender_announces, sender_begin,
    sender_may_send, sender_next,
)


cdef class Sender:
    cdef SenderCredit state

    def __init__(self, int32_t credit):
        sender_begin(&self.state, credit)

    @property
    def credit(self):
        return self.state.credit

    def add_credit(self, credit):
        return <int> sender_add_credit(&self.state, credit)

    def may_send(self, bint is_event):
        return bool(sender_may_send(&self.state, is_event))

    def next(self, bint is_event):
        return sender_next(&self.state, is_event)

    def announces(self, int32_t backlog):
        return bool(sender_announces(&self.state, backlog))


cdef class Receiver:
    cdef ReceiverCredit state

    def __init__(self, int32_t free_count, int32_t exclusive):
        receiver_begin(&self.state, free_count, exclusive)

    @property
    def announced(self):
        return self.state.announced

    @property
    def unannounced(self):
        return self.state.unannounced

    @property
    def free(self):
        return receiver_free(&self.state)

    @property
    def wanted(self):
        return receiver_wanted(&self.state)

    def add_buffer(self):
        receiver_add_buffer(&self.state)

    @property
    def is_due(self):
        return bool(receiver_is_due(&self.state))

    def announce(self):
        return receiver_announce(&self.state)

    def on_frame(self, sequence, bint is_event, int32_t backlog):
        return <int> receiver_on_frame(&self.state, sequence, is_event, backlog)

    def on_backlog(self, int32_t backlog):
        self.state.backlog = backlog
