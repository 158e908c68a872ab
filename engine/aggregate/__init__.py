"""Hash aggregation: groups in a table on pages that spills, states that always merge.

What an operator sees, and how one aggregate goes from its first batch to its end:

aggregate_operator   the operator of a chain; ``engine.operators.registry`` loads it by name
hash_aggregate       batches are checked, and passed to the phase
aggregate_spec       what one aggregate is to do: phase (partial, final, single), keys, calls
aggregate_state      its states as an enum, and which follows on which
pre_aggregation      partial: groups given out when the table is full; rows passed through where that does not pay
full_aggregation     final and single: levels of partitions until each group has come out once
aggregation_level    one level: groups in the table, then in partitions
grouping_phase       rows find their groups in the table, which writes partitions when it is full
partitioned_phase    partitioned aggregation: rows go to their partitions without a look at the table
aggregate_workspace  the table, files and waiting partitions that all levels work with

Groups in a table, whose states are those of ``engine.accumulators``:

table_insert         rows of a batch into a table that may be full
group_table          find or insert the group of every row of a batch, update its states
group_input          a batch on its way into the table, and which of its columns each state reads
dense_groups         kernel: the groups of keys of few values, known by number
group_directory      kernel: where the groups of a table are, by hash
group_store          kernel: group and value records in pages, one list of pages for each partition
integer_keys         kernel: groups of keys that are one integer
text_key_cache       kernel: the groups of short texts that came last, found without a hash
state_layout         where each state of a group lies in its record
value_states         kernel: which rows have a value, of variable size, that replaces that of their group
outside_states       states whose values lie in files
state_columns        states of groups as Arrow arrays; the final value of avg

States as rows, in ``engine.partitions``:

state_partitions     the states of one level by partition of their keys: merged in memory, or written
partition_merger     a partition whose groups are found among its rows, and results of those
state_row_table      kernel: a hash table whose groups are rows of states
state_row_keys       kernel: which rows it may be, and whether two have the same keys
merge_scratch        what tables that take turns work with
file_passes          files read several times instead of being partitioned again
"""
