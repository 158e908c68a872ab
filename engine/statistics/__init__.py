"""Statistics of data: measured, sampled, estimated; and costs of moving and keeping it.

    predicate_shares.py    which share of the rows filters keep, counted in a sample
    column_statistics.py   what a sample of rows says of all of them: widths, nulls, distinct values, heavy keys
    distinct_sketch.pyx    about how many different values a column has, counted over all rows
    bounds_predicate.py    whether rows of which bounds are known can meet a predicate
    estimates.py           what an operator is expected to put out: rows, bytes, columns; where the numbers come from
    costs.py               network, disk and cpu, known or unknown, and how they compare

Statistics of columns are plain data of a plan's sources (``engine.graph.source_spec``), which connectors make of their
samples. The optimizer makes estimates of them for every operator; run-time decisions put real sizes in their place.
"""
