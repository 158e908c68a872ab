"""Credits: why a slow consumer in another process stops its producer, and no other.

    consumer's process                                            producer's process
    receiver_begin(n free buffers)  ── PartitionRequest(n) ──►    sender_begin(n)
    receiver_on_frame               ◄── BufferResponse ───────    sender_may_send ─► sender_next    credit - 1
      announced - 1, backlog known      (sequence, backlog)
    receiver_wanted ─► buffers
    receiver_add_buffer
    receiver_is_due  ────────────── AddCredit(n) ────────────►    sender_add_credit                 credit + n
      receiver_announce
    receiver_wanted                 ◄── BacklogAnnouncement ──    sender_announces: data, no credit

A credit is a free buffer of the receiver that waits for this channel's data: whatever is sent can be received at once,
so the socket that channels share is never blocked by one of them. Free buffers are the exclusive ones of the channel,
and floating ones of the gate while the sender has a backlog.

Invariants
    credit at the sender + credits in AddCredit frames under way + data frames under way = announced;
    announced + unannounced = free buffers of the channel;
    frames of a channel are numbered without gaps; events need no credit;
    an AddCredit is due while unannounced > 0 and unannounced >= announced, and takes along all that there is when it
    is sent: a sender without credit is told of any free buffer, one that has credit of several at once, since each
    AddCredit wakes a thread at both ends.

The kernels (credit.pxd) are called under the lock of the connection, without the GIL.

Source: Flink's CreditBasedSequenceNumberingViewReader and RemoteInputChannel.

Held by: tests/transport/test_credit_machine.py
"""


cdef str credit_text(CreditStatus status):
    if status == CREDIT_SEQUENCE_GAP:
        return "a frame is missing or came twice (sequence gap)"
    if status == CREDIT_NOT_GRANTED:
        return "data came that no credit was given for"
    return "more credits than a receiver can have buffers"
