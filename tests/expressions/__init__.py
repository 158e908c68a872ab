"""Tests of engine.expressions."""
