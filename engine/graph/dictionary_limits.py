"""Limits of dictionary-encoded build sides: how dense keys must be (``engine.join.dictionary_table``).

Such a build side is one byte for each number between the lowest and the highest key, and each distinct row once. The
optimizer expects such a table, and the join makes one, within the same limit.

Held by: tests/optimizer/test_dictionary_builds.py
"""

#: numbers between the lowest and the highest key, for each of the rows
CELLS_PER_ROW = 16
