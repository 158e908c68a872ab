"""A plugin of pytest that tells Ibis' tests of our backend, and writes down what became of each of them."""

import json
import os
import sys
import types
from pathlib import Path

import ibis
from ibis.backends.sql import compilers
from ibis.backends.tests.base import BackendTest

from engine.ibis_backend import Backend, compiler
from tests.ibis_suite import data

#: tests that were there, by what became of them
_outcomes: dict[str, str] = {}


class TestConf(BackendTest):
    """What the tests ask about the backend."""

    supports_map = True
    deps = ("pyarrow",)
    stateful = False

    @classmethod
    def name(cls) -> str:
        return "drey"

    @staticmethod
    def connect(*, tmpdir, worker_id, **kw):
        return ibis.drey.connect(config={"parallelism.default": 1}, **kw)

    def _load_data(self, **_) -> None:
        from ibis.backends.conftest import TEST_TABLES

        con = self.connection
        folder = self.data_dir / "parquet"
        if not folder.exists():
            data.write(self.data_dir, TEST_TABLES["astronauts"].to_pyarrow())
        for name in TEST_TABLES:
            con.read_parquet(folder / f"{name}.parquet", table_name=name)
        for name, table in data.nested().items():
            con.environment.register(name, con.environment.from_arrow(table))


def pytest_configure(config) -> None:
    """Stand in for the module that Ibis looks for."""
    module = types.ModuleType("ibis.backends.drey.tests.conftest")
    module.TestConf = TestConf
    for name in ("ibis.backends.drey", "ibis.backends.drey.tests"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["ibis.backends.drey"].Backend = Backend
    sys.modules[module.__name__] = module
    compilers.drey = compiler


def pytest_runtest_logreport(report) -> None:
    """Note what became of a test."""
    if report.when == "call" or report.outcome != "passed":
        said = "error" if report.when != "call" and report.outcome == "failed" else report.outcome
        if hasattr(report, "wasxfail"):
            said = "expected" if report.skipped else said
        text = "" if report.longrepr is None else str(report.longrepr)[-2000:]
        _outcomes.setdefault(report.nodeid, [said, text])


def pytest_sessionfinish(session) -> None:
    """Write the outcomes."""
    if path := os.environ.get("IBIS_OUTCOMES"):
        worker = os.environ.get("PYTEST_XDIST_WORKER")
        if worker is None:
            Path(path).write_text(json.dumps(_outcomes))
