"""Delta tables: their log is read and committed to by ``deltalake``, their Parquet files are read and written here.

library.py             the library, and its errors
table_types.py         types of Delta as types of Arrow
table_log.py           a version of a table: files, values, deleted rows
delta_source.py        the client's side of a source, statistics and bounds from the log
delta_format.py        the entry (``engine.formats``)
delta_reader.py        the task's side; file_columns.py: columns of the table in one of its files
"""
