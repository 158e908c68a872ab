"""Tests of engine.column_expressions."""
