"""The 22 queries of TPC-H, with the parameters of its validation run, in the words of three engines.

    queries.py           through Drey's API
    sql_queries.py       SQL, as the specification has it: DuckDB's, whose answers are the oracle
    polars_queries.py    through the lazy frames of Polars
    tables.py            the eight tables: of tpcgen-cli where it is installed, else small ones of our own
    answers.py           whether two answers are the same

The tests hold Drey's answers against DuckDB's at a small scale; ``make bench W=tpch`` measures all three engines.
"""
