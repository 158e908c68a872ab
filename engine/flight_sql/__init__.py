"""Flight SQL: a server that tools of any language query over Arrow Flight, with the statements of ``flink-run sql``.

    client ── GetFlightInfo(command) ──► server.py ─► commands.py ─► ticket: a statement's text, or its one row
           ── DoGet(ticket) ──────────►            ─► uploads.py      tables that clients send
admission.py ─► a job, whose rows are sent as they come
           ── DoPut, DoAction ────────►            ─► changes, parameters, prepared statements, cancel

server.py       calls of Flight; errors as what a client shows
access.py       tokens, sessions, and certificates
messages.py     messages of the protocol
tickets.py      what a ticket says; parameters of statements
commands.py     statements and their rows or changes
prepared.py     prepared statements of clients, bounded, with owner and expiry
admission.py    how many statements run at once, and which wait
record.py       what clients ask for, as entries of an audit file
metrics_server.py  /metrics of a server
running.py      statements that run, and how they end with their client
catalog.py      catalogs, schemas and tables
sql_info.py     what the server says of itself and of types
service.py      a server with its environment, from configuration to its end
"""
