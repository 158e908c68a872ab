"""Spilling: blocks of rows to disk and back, checked.

An operator that runs out of pages writes rows through a ``SpillWriter`` of its ``SpillSpace`` and reads them again
through a ``SpillReader``. Threads, disks, checksums, compression and cleaning up are this room's business.

    io_manager.py       IOManager: directories, spaces, close
    spill_directory.py  one directory: this process's locked folder, sweep of dead ones, two queues
    disk_use.py         what folders hold, and what is free beside them
    disk_limit.pyx      DiskLimit: what the files of a folder may take, and which job has how much of it
    spill_space.py      SpillSpace: the files of one operator
    spill_identity.py   SpillIdentity: whose a block is
    spill_writer.pyx    SpillWriter: rows in, blocks on disk, next directory when one is full
    spill_file.pyx      SpillFile: a finished file, blocks one behind the other, without an index
    open_files.pyx      OpenFile: opened by need, so that many files need few descriptors
    block_reader.py     BlockReader: what a file promises of its readers
    spill_reader.pyx    SpillReader: blocks in order, read ahead
    value_store.py      ValueStore: out-of-line values of rows, in files of their own
    request_queue.pyx   one thread per disk and direction, bounded
    io_buffers.pyx      recycled memory for blocks
    block_format.pyx    header, identity, faults
    crc32c.pyx          checksum
    lz4_codec.pyx       compression without the GIL
    words_codec.pyx     compression of rows by what is new in their words
"""
