"""Ibis' own tests of backends, run against ours: data.py makes their tables, plugin.py tells them of us, run.py counts.

.venv/bin/python -m tests.ibis_suite.run --write docs/pages/guide/ibis-operations.md
"""
