"""External sort: rows kept in pages, sorted by an index of prefixes, kept or spilled as runs, merged.

With a ``RowCombiner`` (records) rows of equal keys become one in every run and every merge.

external_sorter   the operator's face: fill, sort, spill; then batches, or its runs for others
record_sorter     one memory's worth: rows in pages of the pool and the sorted index over them
group_cut         kernel: of sorted rows the first ones of each group
group_firsts      kernel: of rows that come, those that can be among the first of their group
sort_worker       the thread that sorts and spills one half of the memory while the other one fills
radix_sort        kernel: sorts index entries by their 8-byte prefix, rows are compared only on ties
key_tail          keys behind those that a prefix begins with, for rows that have these in common
key_bytes         keys as bytes in memcmp order: samples, bounds of ranges, index of a run
sorted_run        a run in memory or on disk, searchable by key
sorted_runs       all runs of a sorter: ranges for readers, spilled for others' sake, released
run_merger        k-way merge of slices of runs
loser_tree        kernel: which of k cursors has the smallest row
merged_batches    the rows of one range of many runs as Arrow batches
run_transfer      runs made of rows that come in order from another process
merge_plan        how many runs may be merged at once, and which, in which order
"""
