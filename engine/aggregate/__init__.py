"""Hash aggregation: groups in a table on pages that spills, states that always merge.

hash_aggregate    the operator's face: phases partial, final and single; spilling and recursion
aggregate_layout  calls as states, operations, columns and schemas
functions         pure tables: argument types, state columns and result types of every aggregate
state_partitions           states past the table, where it would be of no use
partition_sieve     rows of an exchange's pages to those partitions as they are
partition_merger       states whose groups are found among their rows, and results of those
state_row_table        kernel: the groups of rows of states, found among the rows themselves
file_passes       files read several times instead of being parted again
partition_files   the spill files of one level
table_insert        rows of a batch into a table that may be full
row_partitions    kernel: rows parted by keys, in pages and files
group_table       find or insert the group of every row of a batch, update its states
group_directory   kernel: where the groups of a table are, by hash
state_layout      where each state of a group lies in its record
text_key_cache     kernel: groups of short texts that came before
integer_keys         kernel: groups of keys that are one number
group_store       kernel: group and value records in pages, one list of pages for each partition
state_kernels     kernel: update one state column of many groups
state_columns     states of groups as Arrow arrays; the final value of avg
state_rows        rows of partial states: written to and read from spill files
state_combiner    kernel: states of two binary rows of one group, for a sort that combines
outside_states    states whose values lie in files
state_results     results of states that are columns already
ungrouped_states        rows passed through as states, when partial aggregation does not reduce
"""
