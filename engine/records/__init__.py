"""Records: conversion between Arrow record batches and binary rows, which no other room does.

    layout          the row format, written down
    plain_types     dictionary, run-end and view types as the ordinary types of the same values
    stored_types    extension types and what is stored of them; choices: kernels that know the latter alone
    frame_columns   columns of pandas, numpy and Polars with all the values that Arrow has
    narrow_decimals decimals in 64 bits between parts that agree on it
    key_types       which columns can be keys
    arrow_batch     an Arrow batch opened for kernels (Arrow C data interface)
    row_codec       batches to rows and back: column_writer, nested_value │ column_reader, nested_reader
    row_columns     columns of rows, set in a batch that a batch_builder makes without pyarrow's functions
    text_gather     texts of a small dictionary by their numbers; text_take: texts of a column by their rows;
                    column_take: columns of fixed width by their rows
    opened_batch    where the columns of a batch lie, without an export of Arrow's where it was made here
    row_mask        rows that are meant, as words of bits; of codes what is said of them
    kept_rows       rows that a mask keeps; kept_kernels: their loops
    joined_batches  rows of several batches as one batch
    utf8            strings within nested values are text
    row_batch       encoded rows, the interface between sorts and joins
    row_pages       rows in pages, the interface between partitions and joins
    side_by_side    columns of batches of the same rows as one batch
    batch_limits    how large a batch is at most; bounded_batches: batches within the limits
    wide_rows       very wide rows at the edges of a process
    hashing         the 64-bit hash of key columns, from batches and from rows (hash_mix: its mixing functions)
    group_slots     an open table from hashes of keys to numbers of groups, for rows of batches and rows as bytes
    key_group       Flink's key groups: Java's hash codes, murmur, key group, operator index
    comparator      key equality (joins, groups) and the order of sort keys
    row_combiner    combines rows with equal keys, the interface between sorts and aggregates
    row_router       takes rows before they are decoded, the interface between exchange, joins and aggregates
    key_filter      which values a key column has, in a few bits for each; adaptive_key_filter: applied to batches
    key_filter_form  as a batch, which another process reads; key_bits: its loops
    top_keys        which rows can be among the first n, by one key
    top_rows        which rows can be, by all keys of an order
    outside_values  out-of-line values: wide ones lie in files, rows hold references; outside_keys: keys among them,
                    compared block by block
    whole_rows      values go into rows that leave the process, and out of those that arrive
    row_check       rows of other writers are checked
    normalized_key  an 8-byte prefix of the sort keys that compares as they do
    arrow_functions Arrow's compute functions without pyarrow.compute; plain_scalars: its values
    python_values   Arrow values as Python's, and what stands for one that Python has not
    value_reader    the same natively, one at a time; value_writer: Python values into Arrow's buffers
    value_check     which Python values Arrow would cut; array_fit: arrays as another type where nothing is lost
    byte_kernels    unaligned loads, short copies, prefetch

Batch and row kernels run without the GIL; Python objects exist per batch, never per record.
"""
