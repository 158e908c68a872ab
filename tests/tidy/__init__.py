"""Rules of the house as tests: direction of imports, sizes, headers, tests of each module, ruff and mypy."""
