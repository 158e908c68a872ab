"""The package ``pyspark_drey``: Spark 4 looks into packages whose names begin with ``pyspark_`` for data sources.

Installed under that name, in whichever environment Drey is installed; ``DefaultSource`` is what Spark looks for.

Held by: tests/spark/test_data_source.py
"""

from engine.spark.data_source import DreyDataSource as DefaultSource

__all__ = ["DefaultSource"]
