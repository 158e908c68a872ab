"""Whole jobs on an embedded cluster, against DuckDB, pyarrow and plain Python: written from the contract alone."""
