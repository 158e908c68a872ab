"""Iceberg: tables that pyiceberg knows, whose files are read and written by ``parquet``.

library.py             the libraries of the extra ``iceberg``
tables.py              tables and snapshots by what a user passes
folder_catalog.py      a catalog that is a folder
arrow_types.py         types of Iceberg as types of Arrow
planned_files.py       data files of a snapshot with their deletes
bounds.py              bounds of columns in files
iceberg_source.py      sources of a snapshot
iceberg_format.py      IcebergFormat: the entry of sources
pruning.py             files left out while a job is planned, samples
file_columns.py        columns of a file by the ids of fields
row_deletes.py         rows deleted by their positions
iceberg_reader.py      a task's data files as record batches
"""
