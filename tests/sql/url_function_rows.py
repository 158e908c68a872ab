"""Parts of addresses, and what DuckDB calls them.

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

from typing import Final

_PARTS: Final = {
    "PROTOCOL": "'http'",
    "AUTHORITY": "'u:p@a.b:8'",
    "USERINFO": "'u:p'",
    "HOST": "'a.b'",
    "PATH": "'/c/d'",
    "FILE": "'/c/d?e=f&g=h'",
    "QUERY": "'e=f&g=h'",
    "REF": "'r'",
}
#: functions of one row, and what DuckDB calls them
URLS: Final[dict[str, str]] = {
    **{f"parse_url('http://u:p@a.b:8/c/d?e=f&g=h#r', '{name}')": part for name, part in _PARTS.items()},
    "parse_url('http://a.b/?e=f&g=h', 'QUERY', 'g')": "'h'",
    "parse_url('http://a.b/?e=f', 'QUERY', 'f')": "NULL::VARCHAR",
    "parse_url('file:///c', 'HOST')": "NULL::VARCHAR",
    "parse_url('http://[::1]:8/c', 'HOST')": "'[::1]'",
    "parse_url(s, 'REF')": "NULL::VARCHAR",
}
