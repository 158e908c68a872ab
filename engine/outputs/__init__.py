"""Outputs: what data sets write, in files and in tables of other formats, and how tables are changed.

    rows ─► options and order ─► sink                   write_*, for the next job
    rows, table ─► joins and filters ─► sink            merge_into, UPDATE, DELETE, optimize: jobs that run at once

The jobs are made of calls of data sets, which this room is given and does not know.

sink_options.py        partitions, order, sizes, what becomes of what is there; added_files.py: whether it is like what
                       is added
sorted_sinks.py        sinks whose rows are in an order
delta_output.py        rows as a Delta table takes them
iceberg_output.py      rows on their way into a table of Iceberg; iceberg_rows.py: rows of one
iceberg_version.py     a table of Iceberg that is changed; iceberg_changes.py: changed rows of its snapshots
table_targets.py       delta, iceberg: tables that are changed; table_rows.py: rows on their way into them
merge_plan.py          the jobs of merge_into; merge_clauses.py: what becomes of each row; merge_keys.py: keys of both
                       sides, and their lowest and highest values
assigned_types.py      types of values that a column takes without a cast
row_changes.py         UPDATE and DELETE of rows that meet a condition
small_files.py         optimize: small files of a table together
"""
