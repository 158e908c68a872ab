"""Databases: tables and queries that are read by ADBC, and tables that are written.

client, when the plan is built            task, when the job runs
database_source.py                        database_reader.py
         (both: database_statement.py, what is asked for, and what explain shows of it)

database_format.py       the entry (``engine.formats``)
database_connection.py   connections, and URIs of which no password leaves the process
database_types.py        types of columns, and values that no type of the engine holds
database_filters.py      filters that a database decides as the engine does
database_queries.py      texts of SQL: names, literals, ranges
"""
