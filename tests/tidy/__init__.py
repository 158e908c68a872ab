"""Rules of the house as tests: direction of imports, sizes, headers, the README's map, ruff and mypy."""
