"""Sources: what is looked up of a plan's sources before it is optimized; the entries of ``formats`` are asked.

prepared_plan.py       the plan with all of it
source_filters.py      which predicates rows of sources meet first
possible_splits.py     splits that have no row for them are left out
value_runs.py          runs of splits that share no value of a key
key_samples.py         columns are sampled, join keys better than others
computed_keys.py       samples of keys that are expressions
"""
