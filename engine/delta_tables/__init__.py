"""Delta tables: their log is read and committed to by ``deltalake``, their Parquet files are read and written here.

library.py             the library, and its errors
table_types.py         types of Delta as types of Arrow
table_log.py           a version of a table: files, values, deleted rows
delta_source.py        the client's side of a source, statistics and bounds from the log
delta_format.py        the entry (``engine.formats``)
delta_sample.py        what a few files say of columns beside the log
delta_reader.py        the task's side; file_columns.py: columns of the table in one of its files

table_write.py         what a job does to a table, as data; planned_write.py: made of a call's arguments
table_rules.py         what tables ask of their writers, and what one may be made with
delta_sink.py          the entry of the sink
delta_writer.py        the task's side; file_statistics.py: what the log is told of a file
required_parts.py      parts of columns in which no value may be null
patched_file.py        files that are written anew with the rows alone that change
change_writer.py       rows of the change data feed
delta_target.py        where attempts write, and what is left of jobs (``engine.commit``)
table_commit.py        the commit of a job, once
table_change.py        a version that the library cannot make; log_actions.py: the log as it stands
deletion_vectors.py    the bytes of deletion vectors

delta_version.py       a table as ``merge_into`` and ``env.optimize`` change it
table_changes.py       its change data feed
"""
