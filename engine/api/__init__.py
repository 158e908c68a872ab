"""The API of user scripts: Environment, DataSet, expressions.

environment.py         Environment: sinks that wait, execute
  source_calls.py      read_*, from_arrow, from_rows; iceberg_rows.py: rows of a table of Iceberg
data_set.py            DataSet: an immutable handle on a node; its calls are in groups:
  calls.py             what every group stands on
  relational_calls.py  select, filter, sort and the like
  group_calls.py       group_by
  row_calls.py         head, sample, drop_nulls, drop_duplicates, with_row_index and the like
  shape_calls.py       explode, unnest, unpivot, pivot, describe
  join_calls.py        joins, intersect, except_; join_arguments.py: their keys, types and hints
  merge_calls.py       merge_into; merge_plan.py: its jobs, merge_clauses.py: what becomes of each row
  functional.py        map, map_partition, co_group and the like, broadcast data sets
  udfs.py              Python functions within expressions
  partitioning.py      shuffle, rebalance, key_by and the like, replicated
  output_calls.py      write_*; sink_options.py: partitions, order, sizes, what becomes of what is there;
                       added_files.py: whether it is like what is added; delta_calls.py: rows as a table takes them
                       iceberg_output.py: rows on their way into a table of Iceberg
                       iceberg_version.py: a table of Iceberg that is changed
  result_calls.py      collect, to_arrow, to_batches, count, show, explain
projections.py         select, with_columns, drop, rename
aggregates.py          sum_, count and the like, and expressions of them
value_aggregates.py    aggregates that look at the order of values
grouped.py             agg, reduce of groups; grouping_sets.py: rollup, cube; grouped_by.py: both
windows.py             row_number, lag and the like, over
expression.py          Expr and its operators
chains.py              very many terms of one operator
written_places.py      the lines of a script that made expressions; uncaught_errors.py: what it shows of an error
nested_expressions.py number_functions.py string_expressions.py time_expressions.py
data_types.py          types as users write them
intervals.py           interval(months=1)
row_functions.py       coalesce, least and the like: functions of several values
python_habits.py       if, in, len, for and sum on expressions and data sets: what to write instead
other_names.py         names of pandas, Polars and Spark: what to write instead
other_options.py       options of pandas, Polars, DuckDB and Spark: what to write instead
expressions.py         col, lit, when, and all names of expressions
schema_inference.py    schemas of rows and functions, from type hints or the first rows
python_functions.py    Python functions as bytes of the plan
unwritten_outputs.py   write_* without an execute() behind it
cached_rows.py         cache: rows that later jobs read; recursion.py: rows made in rounds, of themselves
runner.py              what a data set needs of its environment
planning.py            exact splits, explain
table_targets.py       delta, iceberg: tables that are changed; table_rows.py: rows on their way into them
row_changes.py         UPDATE and DELETE of rows that meet a condition
optimize_calls.py      small files of a table together
bad_rows.py            malformed rows that are left out, kept and told
executor.py            where plans run; query_language.py: what reads SQL; spark_frames.py: what makes DataFrames
result_stream.py       rows of a job while it runs
results.py             tables and rows in the client
"""
