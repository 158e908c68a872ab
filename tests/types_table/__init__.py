"""Types by paths: every Arrow type that Drey may meet, on every way that a value can go.

sampled_types   the types, with values in ascending order
paths           the ways: sources, sinks, exchange, spill, keys, aggregates, functions, windows, results
table           what a type becomes on a path, where that is not itself: another type, or an error
test_types_table, test_spark_types   each cell of the table
"""
