"""A scan of all columns through a store that takes 30 ms a request, beside one of the same file on this machine.

Both are jobs of a process of its own, in turns; the clock counts from the plan on. The server takes a part of the same
processors, which counts against the store.
"""

from pathlib import Path
from statistics import median

from tests.bench.lake import scan_requests
from tests.bench.lake.measured import measured
from tests.bench.lake.row import Figure
from tests.bench.lake.store_server import served

DEFAULT_ROWS = 8_000_000
DELAY_MS = 30
_SCAN = """
from engine import Environment, col, sum_
with Environment(arguments["settings"]) as env:
    begin()
    data = env.read_parquet(arguments["path"])
    names = [name for name in data.columns if name != "key"]
    data.agg(**{name: sum_(name) for name in names}).to_arrow()
    end()
"""


def figures(rows: int, runs: int, folder: Path) -> list[Figure]:
    """Scan both in turns."""
    made = scan_requests.prepared(rows, folder)
    path = made / "wide.parquet"
    local, through = [], []
    with served(made, DELAY_MS) as store:
        for _ in range(runs):
            local.append(measured(_SCAN, settings={}, path=str(path)))
            through.append(measured(_SCAN, settings=store.settings, path="s3://bucket/wide.parquet"))
        requests, _ = store.counts()
    ratios = {
        what: median(far[what] / near[what] for far, near in zip(through, local, strict=True))
        for what in ("seconds", "cpu_seconds")
    }
    seconds = [median(each["seconds"] for each in one) for one in (through, local)]
    about = (
        f"{path.stat().st_size / 1e9:.1f} GB, {requests // runs} requests, {seconds[0]:.2f} s for {seconds[1]:.2f} s,"
        f" processor time x {ratios['cpu_seconds']:.2f}"
    )
    return [Figure(f"scan with {DELAY_MS} ms a request, by the clock", ratios["seconds"], 1.5, 1.15, about)]
