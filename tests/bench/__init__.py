"""Benchmarks: Drey beside DuckDB and Polars, in turns, on the same data, with results that are compared.

    python -m tests.bench [WORKLOAD ...] [--rows N] [--runs 3] [--folder DIR] [--engines drey,duckdb,polars]

    skewed_join.py       W1: 14 M rows of CSV joined with 492 currencies, 13 of 14 rows with the same one, to CSV
    workload.py          what a workload is; the table of all of them
    measured_run.py      one engine once, in a process of its own: seconds, CPU seconds, peak memory of its process tree
    engine_run.py        what that process executes
    output_fingerprint.py   rows and an order-free hash of an output, by DuckDB
    machine_limits.py    memcpy, first touch, disk write, lz4: what this machine can do at this moment
    report.py            the table

Engines take turns within one run, because machines of the cloud change their speed from minute to minute; only ratios
of one run mean anything. No time is ever asserted. Never part of the tests: nothing here is named ``test_``.
"""
