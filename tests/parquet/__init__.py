"""Parquet: reading within bounds, writing."""
