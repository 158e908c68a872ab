"""Rules of the house as tests: direction of imports, sizes, headers, the map of mechanisms, ruff and mypy."""
