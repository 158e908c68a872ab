"""The exchange: how rows get from a producer's subtask to its consumers, and how a slow consumer slows a producer down.

    RecordWriter ─► ResultPartition ─► subpartitions ─► LocalInputChannel ─► InputGate ─► gate_batches or the pages

    buffer_pool                 NetworkBufferPool, LocalBufferPool, Buffer: memory, its fair sharing, back pressure
    channel_selector  key_selector  selector_choice
                                which channel a row goes to: the eight of Flink and HASH, as batch kernels
    heavy_hashes                hashes of the heavy keys of a join, which are spread or replicated
    record_writer               batches to row pages, one open buffer per channel; oversized rows as fragments
    reference_writer            batches by reference: FORWARD and BROADCAST of PIPELINED results
    record_writer_builder       the writer that fits a partition; protocol Writer
    output_flusher              sends half-full buffers after the buffer time-out
    result_partition            ResultPartition: life cycle, counters, views; PagePartition: written in pages
    partition_life              its states, and the error of a producer that writes too late
    partition_builder           new_partition: the partition that fits a descriptor, with its pool of buffers
    pipelined_partition  pipelined_subpartition
                                PIPELINED: native bounded queues, each to one consumer
    blocking_partition  blocking_data
                                BLOCKING: memory first, then one file; views that read again and again
    subpartition_view           SubpartitionView: the interface through which each of them is read
    block_index                 where the blocks of that file are
    partition_file              data file with checksummed blocks, index file
    read_ahead                  ReadAhead, DiskReaders: files read for other processes, by threads of their own
    partition_folders           where those files go
    side_partition              SidePartition: a few batches for any number of readers, beside the rows
    sorted_partition  sorted_runs_writer  range_view
                                BLOCKING in order: the sorted runs of a producer, read by ranges of keys
    partition_manager           ResultPartitionManager: attempt ─► data set ─► partition
    input_channel               InputChannel, RemoteChannels: what a gate needs of a producer here or elsewhere
    local_input_channel         LocalInputChannel: a view of a partition of this process, with back-off
    row_pieces  piece_bytes     rows larger than a buffer put together, the very wide ones one at a time
    batch_stream                batches as bytes: columns that are stored, or sent to another process
    input_gate                  InputGate: one native ready queue, fair across channels
    ready_queue  monitor        that queue; mutex and condition (pxd only)
    waiting_line                the threads that wait for buffers, each on its own condition (pxd only)
    passing                     what a thread does before it waits: others begin that it may wait for
    page_runs                   the elements of a gate, with pages that are there taken together
    page_reader                 gate_batches: small pages to batches of useful size
    elements                    elements that a gate returns

Waiting always happens without the GIL and always ends: by data, by time, or by TaskCancelledError.
"""
