"""Spark around the engine. It is an optional extra: the engine itself needs no JVM.

export.py       ``bin/spark-export``: read, clean, write a record data set with its manifest
statistics.py   what the manifest says of each column, in as few passes as it takes
"""
