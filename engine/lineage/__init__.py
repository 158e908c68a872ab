"""Lineage: which data a job read and wrote, and which columns came from which, told as events of OpenLineage.

    env.execute() ─► events.py: START ─► the job runs ─► COMPLETE or FAIL
                        └─ datasets.py   names and columns of inputs and outputs
                        └─ columns.py    columns of outputs, back to those of inputs

columns.py     from a plan: where each column of a sink comes from
datasets.py    the names that data sets have in OpenLineage
events.py      events, and their way out by the client of OpenLineage
"""
