"""Connectors: where rows come from and where they go.

client, when the plan is built                      task, when the job runs
csv_source.py     csv_sample.py csv_splits.py       csv_reader.py csv_parse.py     csv_writer.py csv_format.pyx
parquet_source.py parquet_sample.py                 parquet_reader.py              parquet_writer.py
records_source.py records_manifest.py               (Parquet)                      records_writer.py
text_source.py                                      text_reader.py text_lines.py   text_writer.py
arrow_source.py   row_source.py                     arrow_reader.py                arrow_writer.py

records_parts.py       what parts say of their columns, and the manifest made of it
distinct_sketch.pyx    about how many different values a column has
paths.py               files of a path, folder or glob
csv_rejects.py         malformed records as rows, where they are to be kept
csv_dialect.py         delimiter and quote
csv_encoding.py        other encodings than UTF-8
csv_inference.py       types of a file without a schema
csv_advice.py          warnings: another delimiter, a header, another encoding
csv_scan.pyx           where records begin and end
csv_columns.pyx        ordinary blocks of CSV straight into columns; the rest is for csv_parse.py
quote_mask.pxd, field_index.pxd   quotes, delimiters and newlines of a block as bit masks; prefix_xor.pxd: within quotes
csv_long_records.py    a record of many megabytes, field by field; csv_fields.pyx finds and copies them
column_statistics.py   what a sample says of the whole
parquet_keys.py        a better sample of key columns
computed_keys.py       the same for keys that are expressions
parquet_footers.py     one footer for all readers of a file
page_check.py          pages whose headers cannot be right (page_sizes.pyx), before Arrow believes them
parquet_residence.py   what reading a row group holds
column_passes.py       row groups whose columns do not fit side by side
wide_columns.py        pages of very wide values, value by value: parquet_pages.py compact_protocol.py snappy_stream.pyx
                       delta_values.py
wide_rows.py           how wide rows are; what Arrow has freed of them goes back at once (arrow_decay.py)
bounded_batches.py     batches within the limits of rows and bytes
source_reader.py       the interface of readers, ``open_source``
discard_writer.py      no rows at all, for jobs that are measured
sink_writer.py         the interface of writers, ``open_sink_writer``
output_file.py         the file of a text sink, gone unless it is finished
"""
