"""How close together keys lie of whose build rows a join keeps a byte for each number (``engine.join.alike_rows``).

The optimizer expects such a table, and the join makes one, within the same limit.
"""

#: numbers between the lowest and the highest key, for each of the rows
CELLS_PER_ROW = 16
