"""Rows by the hash of their keys: partitions in memory and in files, for what groups or joins more than memory holds.

row_partitions       kernel: rows by partition of their keys, in pages and files
partition_router      rows of an exchange's pages into those partitions, not decoded
partition_files      the spill files of one level, and how many partitions a memory has
spilled_rows         rows to and from spill files; those of one part of the keys
parted_input         the rows of one input, partitioned level by level
recursion            parts that wait: done in memory, partitioned again, or by another way

    rows ─hash of keys─► partitions ─┬─► in pages of the pool: ``KeptRows``
                                     └─► in files: ``SpillFile``, read as rows or parted again, by a fresh hash

Rows of one key are in one partition, in the order in which they came.
"""
