"""Statements: a text of them taken apart, and what each of them does.

    text ─► statements.py ─► EXPLAIN, CREATE VIEW, COPY ...: what a shell or a command does
                         └─► query.py: a query as a data set; MERGE, UPDATE, DELETE: table_changes.py

query.py            text to data set; reader_calls.py: files in FROM with options
session.py          statements of a session: queries, and what changes its names or writes
attached.py         tables of catalogs that were attached; table_changes.py: MERGE, UPDATE and DELETE of tables
assignments.py      which column of a table gets which value
statements.py       a text of statements taken apart; words.py: the words of one
versions.py         versions of tables: numbers, names and moments
parameters.py       values of $1 and :name
macros.py           expressions and queries with parameters, written where they are called
information_schema.py   which tables there are, and which columns
text_pieces.py      strings, names and comments of a text
"""
