"""The API of user scripts: Environment and DataSet; expressions are in ``engine.column_expressions``.

environment.py         Environment: sinks that wait, execute
  source_calls.py      read_*, from_arrow, from_rows; sequence_rows.py: sequence
  file_calls.py        read_excel, read_fwf
data_set.py            DataSet: an immutable handle on a node, and its results; its other calls are in groups:
  calls.py             what every group stands on, and Runner: what a data set needs of its environment
  relational_calls.py  select, filter, sort, group_by, joins and the like
  join_arguments.py    keys, types and hints of joins; join_checks.py: validate=; column_sides.py: data["x"] in joins
  row_calls.py         head, sample, drop_nulls, explode, pivot and the like; shapes.py: what these make of arguments
  time_groups.py       group_by_dynamic, rolling, upsample
  functional.py        map, map_partition, co_group and the like, broadcast data sets; shuffle, key_by and the like
  output_calls.py      write_*, merge_into: the room of outputs has the rest
grouped_by.py          what group_by returns: agg, reduce, head, rollup, cube
other_options.py       options of pandas, Polars, DuckDB and Spark: what to write instead
uncaught_errors.py     what a script shows of an error
unwritten_outputs.py   write_* without an execute() behind it
cached_rows.py         cache: rows that later jobs read; recursion.py: rows made in rounds, of themselves
planning.py            exact splits, explain
bad_rows.py            malformed rows that are left out, kept and told
kept_statements.py     queries of SQL that are asked again; kept_jobs.py: jobs that are run again
job_names.py           names of jobs that a program gives none
executor.py            where plans run; query_language.py: what reads SQL; spark_frames.py: what makes DataFrames
spoken_texts.py        expressions that are written in SQL, expr(text)
result_stream.py       rows of a job while it runs
results.py             tables and rows in the client
"""
