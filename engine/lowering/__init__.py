"""Lowering: what users say, as operators that the optimizer knows.

    said         windows, values of data sets and users' functions in expressions; GroupBy, JoinBy, SortBy, Pivot ...
      │          lowered(operator, inputs): a pure function, whose errors are those of the call
      ▼
    lowered      Project, Window, Aggregate, Join ...: what the optimizer gets; the node remembers what was said

Rules know the plan and its expressions, no data set and no environment.

said_nodes.py          what a user says, lowered and remembered; said_text.py: as text
logical_node.py        the program under construction, and the Plan made of it
job_moment.py          the moment at which a job is submitted, in the place of now()
projections.py         projections of nodes, names that no column has
terms.py               expressions that rules put together
window_nodes.py        window functions as operators of the plan
window_rewrites.py     windows of different values and of two arguments, made of others
window_exclusions.py   frames of groups, and frames that leave out rows
window_distances.py    distances of range frames in units of their key
partition_aggregates.py    medians, lists and the like over windows: of groups, joined to their rows
function_columns.py    users' functions of values, as columns
function_nodes.py      users' functions over groups of two inputs, and functions with broadcast data sets
groups.py              groups by keys that are computed, and by several sets of keys
aggregate_columns.py   columns of aggregates, from one operator or from several that are put together
shared_sums.py         sums of one column plus constants, from one sum
aggregate_parts.py     aggregates made of several operators
sorted_parts.py        aggregates of groups whose rows are in an order: lists, quantiles
span_aggregates.py     sums and means of durations, from those of their ticks
aggregate_nodes.py     one aggregate as an operator of the plan
data_set_values.py     scalar, is_in(data_set)
apply.py               queries beside rows, as joins: values, existence, membership
joins.py               join, union
join_keys.py           keys of joins: expressions, null-safe ones, names that both sides have
exact_keys.py          keys of two types: the type in which both are compared exactly
compared_columns.py    what conditions of joins compare, as columns
asof_joins.py          as-of joins
null_aware_joins.py    NOT IN by several keys
set_operations.py      intersect, except_
pivots.py              a column for each value of a column
row_order.py           orders by expressions, pages
"""
