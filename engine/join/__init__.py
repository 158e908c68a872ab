"""Joins within a memory budget.

join_spec       what a join joins and gives out, frozen
join_type       what each join type returns, as a truth table
pair_condition  what a pair must fulfil beside equal keys
replicated_keys heavy keys whose rows are copies in every subtask
hash_join       HashJoin: the hybrid hash join, the room's entrance
join_phase      its phases: which follows which, and which calls are illegal in it
batch_prober    looks the rows of a probe batch up in what is in memory
join_roles      what depends on which side is built: sides, table, output, condition
build_input     build rows on their way in: null keys, the dictionary table, partitions
recent_rows     rows that came before, left out where only the presence of a key is asked for
join_side       schema, row codec and key columns of one input
entry_pages     pages of rows with links, as a plain struct
hash_partition  one partition: resident or spilled, and its probe file
partition_set   the partitions of one level, scatter, spill of the largest
bloom_filter    keys of spilled rows, so that probe rows without match are not spilled
build_table     the interface of the tables that find build rows
table_choice    which kind of table a build side gets
tagged_table    any keys: a directory of tagged pointers, vectorised lookup
dense_table     keys that are numbers close together: a perfect hash
dictionary_table build rows that differ in such a key alone: dictionary-encoded, each distinct row once
direct_pages    cells by the number that is a key
probe_matches   the matches of a chunk of probe rows, as bounded pairs
spill_router     early spill partitioning: probe rows of spilled partitions, taken before they are decoded
pair_filter     asks the condition about candidate pairs
replicated_hashes the hashes of replicated keys, for kernels
unmatched_rows  build rows without match, as output batches
match_output    output batches from probe columns and build rows
spilled_pair    a build file and its probe file: scatter again, or block-wise
borrowed_build  one build side for several joins of a process
build_keys      the keys of a complete build side, for filters of the probe side
key_part        rows of a part of the keys, for a pass over files
build_blocks    a build file in blocks that fit memory
matched_rows    which outer probe rows matched in an earlier pass
row_stream      the rows of a spill file
sort_merge_join SortMergeJoin: merges two sorted inputs, groups of equal keys bounded
asof_join       AsofJoin: for each left row the right row nearest in time, in one pass over sorted inputs
asof_groups     AsofGroups: the same of rows in any order that lie in memory, group by group
row_groups      numbers for rows of both sides by their keys
short_groups    the same of keys that are one short text, by the text itself
asof_output     candidates of left rows, and the pairs that come of them
asof_choice     which candidate it takes, and how far away it may be
range_join      RangeJoin: rows with an interval and those whose point lies in it, both inputs sorted
range_spec      which columns are point and bounds
span_pairs      intervals with their points, as bounded pairs
point_block     sorted points in memory, and where bounds lie among them
sorted_batch    some rows of a sorted input, opened for the merge, and how keys compare
key_groups      where two sorted batches have equal keys, and their pairs
pair_columns    chosen columns of pairs of rows, decoded
"""
