"""Iceberg: tables that pyiceberg knows, whose files are read and written by ``parquet``.

Tables:

    library.py             the libraries of the extra ``iceberg``
    tables.py              tables and snapshots by what a user passes
    catalog_place.py       a catalog as data without secrets, and opened again
    folder_catalog.py      a catalog that is a folder
    store_io.py            metadata files of such a catalog in an object store
    metadata_files.py      metadata files in a table's folder
    arrow_types.py         types of Iceberg as types of Arrow
    iceberg_types.py       types of Arrow as types of Iceberg

Reading:

    manifests.py           manifests with all fields of their entries
    planned_files.py       data files of a snapshot with their deletes
    bounds.py              bounds of columns in files
    iceberg_source.py      sources of a snapshot
    iceberg_format.py      IcebergFormat: the entry of sources
    pruning.py             files left out while a job is planned, samples
    file_columns.py        columns of a file by the ids of fields
    snapshot_changes.py    files that snapshots have changed
    row_deletes.py         rows deleted by their positions
    iceberg_reader.py      a task's data files as record batches

Writing:

    write_plan.py          the table that is there or is made, and how rows become its files
    table_properties.py    properties of a table that is made, and of one that is there
    write_options.py       what tasks and the committing leader have to know
    iceberg_sink.py        IcebergSink: the entry of sinks
    iceberg_writer.py      data files, and rows in the order of partitions
    patched_file.py        data files that are written anew with the rows alone that change
    file_statistics.py     what a manifest says of a data file
    iceberg_target.py      IcebergTarget: prepared, published, aborted, swept
    table_commit.py        the commit, once for each job
    concurrent_changes.py  changes of other writers that a commit bears, or does not
    delete_files.py        position deletes that a commit writes
    third_version.py       tables of the third version, which pyiceberg does not write
    uncommitted_metadata.py  files of metadata of commits that are none
    snapshot_files.py      the snapshot: files added, and files left out
"""
