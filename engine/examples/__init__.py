"""Jobs to start from; each runs as it stands, with data of its own.

access_log.py            fields out of lines of text, figures of groups
funnel.py                steps of users in their order
history.py               versions of rows with the time when each was valid
latest_state.py          of several versions of a row the last one
page_rank.py             a loop of jobs, with what stays the same kept
scores.py                a model applied to batches
sessions.py              visits that belong together
tf_idf.py                words that tell documents apart
top_products.py          the best of each group
trades_and_quotes.py     an as-of join
word_count.py            Python functions
skew_join.py             the main job: instruments joined with their currencies, 13 in 14 of which are the same
generate_instruments.py  its data
"""
