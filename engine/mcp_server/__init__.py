"""A server of the Model Context Protocol: tables for agents, which read them with queries of SQL within limits.

tools.py       the tools: which tables there are, their columns, plans, and the first rows of queries
"""
