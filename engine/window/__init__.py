"""Window functions over rows that come sorted by their partition and order: one pass.

evaluator         WindowEvaluator: the room's entrance; sorted batches in, the same with results out
functions         which functions there are: types of arguments and results, the form that kernels read
key_levels        in which key each row differs from the one before it
row_block         a batch of sorted rows opened for kernels, positions for its rows
block_queue       rows that wait or that frames still have, in memory and spilled
block_bounds      where partitions, peers and frames of a block's rows begin and end
group_bounds      kernel: groups of equal keys
range_bound       kernel: frames by distances in the order key's values
rank_kernels      kernels: rankings, bounds by rows, places of single values
running_kernels   kernels: values that follow from those of the row before
calls             functions at work: what they wait for, their results, the rows they still need
row_values        a column's values at other rows
frame_aggregates  aggregates over frames that only move forward
frame_walk        rows of a block with their frames, and the blocks that they enter and leave from
extremes          the least value of a frame that slides
frame_quantiles   quantiles over frames
ordered_values    kernel: the values of a frame in their order
frame_lists       the values of each frame as a list

Aggregates that look at all values of a group, from the same sorted rows, or from rows in any order:

sorted_groups     SortedGroups: sorted batches in, a row for each group out
group_kernels     kernel: where groups begin, how many rows of each count
partitioned_groups  PartitionedGroups: batches in any order in, parted by their keys, a row for each group out
grouped_rows      GroupedRows: rows of few groups in memory, batch by batch group by group
group_order       kernel: the rows of a batch group by group
group_sort        kernel: those of each group in the order of a column
value_words       values as unsigned numbers in the same order
quantiles         quantiles of groups, whatever their values are
group_quantiles   kernel: values at a share of each group's, selected
exact_quantiles   kernel: the number between two of them
value_search      ... of a group that is larger than memory, in passes over its rows

        │ 4 4 5 7 7 7 9 │ 1 2 2 ...      rows of two partitions in order
              └──┬──┘
        start ───┘    └─── end           of a row's frame: both only move forward, so a row enters and leaves once

Source: Leis, Kundhikanjana, Kemper, Neumann, "Efficient processing of window functions in analytical SQL queries"
(2015), from which we differ: where it has a segment tree, sums here are exact and can be taken back, and extremes are
kept in order.
"""
