"""Jobs to start from.

skew_join.py             the main job: instruments joined with their currencies, 13 in 14 of which are the same
generate_instruments.py  its data
"""
