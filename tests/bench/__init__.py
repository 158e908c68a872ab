"""Benchmarks: Drey beside DuckDB and Polars, in turns, on the same data, with results that are compared.

    python -m tests.bench [WORKLOAD[@CAP_MB] ...] [--rows N] [--runs 3] [--folder DIR] [--engines drey,duckdb,polars]
                          [--resume]
    python -m tests.bench kernels [--rows N]
    python -m tests.bench functions [PART OF A NAME] [--rows N] [--runs 3]
    python -m tests.bench sorted_groups [--rows N] [--runs 3]
    python -m tests.bench splits [WORKLOAD@PROCESS_MB ...] [--rows N] [--runs 3]
    python -m tests.bench start [--runs 3]
    python -m tests.bench on_spark [--rows N] [--scale 1] [--runs 3]
    python -m tests.bench closure [--rows N] [--runs 3] [--limit-mb N]
    python -m tests.bench contained [--scale 1] [--rows N] [--runs 3] [--limit-mb N]
    python -m tests.bench cores [--scale 1] [--runs 3] [--limit-mb N]
    python -m tests.bench correlated [--scale 1] [--runs 3] [--limit-mb N]
    python -m tests.bench tpcds [--scale 1] [--runs 3] [--limit-mb N] [--rounds 1]
    python -m tests.bench tpch [--scale 1] [--runs 3] [--limit-mb N] [--engines drey,duckdb,polars]
                               [--rounds 1]
    python -m tests.bench dbbench [--rows N] [--runs 3] [--limit-mb N] [--engines drey,duckdb,polars]
    python -m tests.bench lake [ROW ...] [--rows N] [--runs 3]
    python -m tests.bench wide [--rows N] [--runs 3] [--limit-mb N] [--engines drey,duckdb,polars]

    skewed_join.py       W1: 14 M rows of CSV joined with 492 currencies, 13 of 14 rows with the same one, to CSV
    sort.py              W2: 10 M records of 100 bytes by a random key of 10 bytes; free and capped
    lineitem_join.py     W3: lineitem joined with orders, grouped by five priorities; free and capped
    group.py             W4: 20 M rows into 5 M groups; free and capped
    asof.py              W6: 1 M trades, each with the last of 5 M quotes of its symbol
    windows.py           W5: 10 M rows in partitions of a thousand: row number, running sum, sliding average
    kernels.py           encode, hash, partition, sort, join, aggregate, spill on one thread: nanoseconds a row
    functions.py         Python functions beside a bare loop in as many processes: ratios of CPU seconds
    sorted_groups.py     groups sorted by their keys, combined in the sort and not: ratios of CPU seconds
    splits.py            the process size alone beside splits of it made by hand: ratios of CPU and wall time
    start.py             the first job of a process and later ones, of ten rows: milliseconds of CPU
    closure.py           closures of ten million edges by WITH RECURSIVE, the same figures
    contained.py         TPC-DS and the wide table in memory control groups of 1, 2 and 4 GB, nothing told to Drey
    cores.py             eight queries of TPC-H with 1 to 16 subtasks, beside as many threads of DuckDB
    correlated.py        twenty correlated subqueries, the same figures; answers compared
    tpcds.py             the 103 statements of TPC-DS in SQL, likewise
    tpch.py              the 22 queries of TPC-H, each with its CPU seconds, wall time and memory; answers compared
    dbbench.py           groups and joins in the shapes of db-benchmark, the same figures; checksums compared
    wide.py              scans and aggregates over a hundred columns, as ClickBench asks; the same, answers compared
    lake/                object stores, tables and databases: requests, bytes, clock beside what is needed at least
    on_spark.py          exports and imports beside what Spark alone takes, and the 22 queries by -t spark: ratios
    questions.py         what these three are: questions of one session, each measured
    idle.py              a job of one row, for the idle size of each engine's process
    workload.py          what a workload is; the rows of the table
    measured_run.py      one engine once, in a process of its own: seconds, CPU seconds, peak memory of its process tree
    engine_run.py        what that process executes
    output_fingerprint.py   rows and an order-free hash of an output, by DuckDB
    machine_limits.py    memcpy, first touch, disk write, lz4: what this machine can do at this moment
    report.py            the table

A capped row holds the resident memory of an engine's processes to its idle size and the cap: every engine is told its
limit in its own settings, and a watch kills what exceeds it. An engine that dies is told three quarters of the cap,
then half, as a patient person would; one that dies of all three is shown as died. Each row's result is kept as JSON
in the folder of the data ($DREY_BENCH_DIR, or the system's temporary folder); with --resume rows that have one are
not run again.

Engines take turns within one run, because machines of the cloud change their speed from minute to minute; only ratios
of one run mean anything. No time is ever asserted. Never part of the tests: nothing here is named ``test_``.
"""
