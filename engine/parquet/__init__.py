"""Parquet: row groups read within the memory that is granted, and written.

client, when the plan is built         task, when the job runs
source.py  sample.py  key_sample.py    reader.py  writer.py

footers.py             one footer for all readers of a file
sample.py              what a sample of rows says of the columns; key_sample.py: a better sample of key columns
page_check.py          pages whose headers cannot be right (page_sizes.pyx), before Arrow believes them
residence.py           what reading a row group holds
column_passes.py       row groups whose columns do not fit side by side
wide_columns.py        pages of very wide values, value by value: pages.py compact_protocol.py snappy_stream.pyx
                       delta_values.py
"""
