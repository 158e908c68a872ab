"""What is known of data: measured, sampled, estimated; and what it costs to move and to hold it.

    estimates.py   what is expected of one operator's output: rows, bytes, columns, and where the numbers come from
    costs.py       network, disk and cpu, known or unknown, and how they compare

Statistics of columns are plain data of a plan's sources (``engine.graph.source_spec``). The optimizer makes estimates
of them for every operator; run-time decisions put real sizes in their place.
"""
