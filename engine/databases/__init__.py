"""Databases: tables and queries that are read by ADBC, and tables that are written.

client, when the plan is built            task, when the job runs                JobMaster
database_source.py                        database_reader.py
         (both: database_statement.py, what is asked for, and what explain shows of it)
write_call.py                             sent_rows.py postgresql_writer.py      postgresql_target.py sqlite_target.py
         (all: written_table.py, what is written and how)                        repeated_publication.py

database_format.py database_sink.py       the entries (``engine.formats``)

adbc_connection.py       statements and results of a driver
database_connection.py   connections, and URIs of which no password leaves the process
other_drivers.py         places of other ADBC drivers
database_types.py        types of columns, and values that no type of the engine holds
database_filters.py      filters that a database decides as the engine does
database_queries.py      texts of SQL: names, literals, ranges; table_names.py: names as users write them
written_types.py         types that a database keeps, and columns that take them
written_queries.py       statements that make tables, and put rows into them
postgresql_state.py      the state of PostgreSQL in which all tasks of a job read it
postgresql_table.py sqlite_table.py       tables that are there, and whether rows fit into them
"""
