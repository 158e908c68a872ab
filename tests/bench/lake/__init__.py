"""Data where it lies: object stores, tables and databases, each row of the table in a module of its own.

    python -m tests.bench lake [ROW ...] [--rows N] [--runs 3] [--folder DIR]

    row.py             what a row is: a module with the names of ``Row``; ROWS, and the table
    store_server.py    a server of S3 that gives files of a folder after a while, and counts what it was asked for
    measured.py        a program in a process of its own: its figures as JSON
    scan_requests.py   requests and bytes of a scan of 3 of 16 columns with 5 % of the row groups left
    scan_latency.py    a scan through a store that takes 30 ms a request beside one of the same file on this machine
    table_plans.py     plans of tables of Delta and Iceberg with very many files beside deltalake's and pyiceberg's
    delta_merge.py     a merge in 512 MB beside deltalake's
    partitioned_write.py   10,000 partitions of Iceberg in 256 MiB beside the same rows without partitions
    database.py        a table of PostgreSQL that is read and written beside the driver alone
    beside.py          programs in turns, and their ratios

Figures are ratios of one run: to what is needed at least, or to the peer. A row whose ratio is beyond its limit is
marked. Peers and programs take turns.
"""
