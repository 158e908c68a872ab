"""External sort: rows kept in pages, sorted by an index of prefixes, spilled as runs, merged.

external_sorter   the operator's face: fill, sort, spill, merge, output batches
record_sorter     one memory's worth: rows in pages of the pool and the sorted index over them
radix_sort        kernel: sorts index entries by their 8-byte prefix, rows are compared only on ties
run_merger        k-way merge of runs that are read block by block
loser_tree        kernel: which of k cursors has the smallest row
merge_plan        how many runs may be merged at once, and which, in which order
"""
