"""Spark around the engine. It is an optional extra: the engine itself needs no JVM.

export.py       ``bin/spark-export``: read, clean, write a record data set with its manifest
exportable.py   which types can be written, and with which of Spark's settings
"""
