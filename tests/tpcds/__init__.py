"""The 99 queries of TPC-DS, 103 statements, and its tables.

    queries.py    the statements as the specification's own program writes them, in the words of today's SQL
    tables.py     the 24 tables of tpcgen-cli

DuckDB's answers are the oracle. The tests hold Drey's against them at a small scale; ``make bench W=tpcds`` measures.
"""
