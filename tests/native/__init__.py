"""Test-only native modules: they reach kernels that have no Python face."""
