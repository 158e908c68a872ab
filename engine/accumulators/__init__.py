"""Aggregate functions: what each keeps of its values, how rows and other states change it, and what its result is.

Groups in tables, groups that a sort combines and frames of windows take their sums, means and moments from here.

aggregate_functions  tables: argument types, state columns and result types of every aggregate
aggregate_layout     calls as states, operations, columns and schemas
ungrouped_states     rows as states, each a group of its own

checked_sums.pxd     sums of integers and decimals that tell when they leave their type
exact_sum.pxd        sums of floats that values can be taken out of again
means.pxd            means of sums, rounded once
state_kernels        kernel: update one state column of many groups
few_groups           kernel: update a state of one group that all rows belong to, or of few from lists of their rows
moment_kernels       kernel: moments of groups, and what is made of them
state_combiner       kernel: merges the states of two rows of one group
state_results        results of states that are columns already
"""
