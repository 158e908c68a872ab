"""Queries in SQL beside DuckDB, and what is said of those that are refused."""
