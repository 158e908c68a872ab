"""Pictures of pages for the documentation, of real runs in a headless Chromium.

    python -m tests.docs.screenshots [FOLDER]        make screenshots: writes docs/pages/operating/pictures

    skew, slow function, spilling     jobs of tests.bench.causes, embedded: their pages
    plan, job                         the tutorial: the page that its fifth part writes, its program on a cluster
    overview, flame graph             a cluster of two TaskManagers with a job at work
    history                           the history server, once that cluster is stopped

A picture is what a person sees first: no longer than a screen or two. What is on it is read from the page as well, so
that a test need not compare bytes.

Held by: tests/docs/test_screenshots.py
"""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from engine.profile.profile_page import profile_page
from tests.bench.causes import JOBS, Place
from tests.chaos.cluster import ChaosCluster
from tests.docs.pages import FOLDER, blocks_of
from tests.ha.quorum import free_port
from tests.rest.browser import Page, browser_page

PICTURES = FOLDER / "operating" / "pictures"
#: jobs whose pages are shown, by the name of the picture, with the height that is shown
CAUSES = {"skewed-key": ("skew", 940), "slow-function": ("slow function", 680), "spilled-rows": ("spilling", 1080)}
NAMES = (*CAUSES, "rentals-plan", "overview", "flame-graph", "rentals-job", "history")
BYTES_MAX = 60 << 10
_WIDTH, _QUALITY = 1100, 45
_SCRIPT = """
import sys
import pyarrow as pa
from engine import Environment

rounds = int(sys.argv[1])

def risk(row):
    total = 0
    for number in range(300):
        total += number * row.n % 7
    return {"n": row.n, "risk": total}

if __name__ == "__main__":
    with Environment(config={"parallelism.default": 4, "python.execution-mode": "thread"}) as env:
        rows = env.from_arrow(pa.table({"n": list(range(1000 * rounds))})).rebalance()
        rows.map(risk, schema=pa.schema({"n": "int64", "risk": "int64"})).write_csv(sys.argv[0] + ".out")
        env.execute()
"""


class Seen(NamedTuple):
    """What is on a picture: its headings, its text, and how many drawings."""

    headings: list[str]
    text: str
    drawings: int


async def picture(page: Page, address: str, path: Path, height: int) -> Seen:
    """Write a picture of the upper part of a page and return what is on it."""
    await page.call(
        "Emulation.setDeviceMetricsOverride", width=_WIDTH, height=height, deviceScaleFactor=1, mobile=False
    )
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    await page.call("Emulation.setScrollbarsHidden", hidden=True)
    await page.go(address)
    clip = {"x": 0, "y": 0, "width": _WIDTH, "height": height, "scale": 1}
    shot = await page.call("Page.captureScreenshot", format="webp", quality=_QUALITY, clip=clip)
    path.write_bytes(base64.b64decode(shot["data"]))
    headings = await page.value("[...document.querySelectorAll('h1, h2')].map((each) => each.innerText)")
    text = await page.value("document.body.innerText")
    return Seen(headings, text, await page.value("document.querySelectorAll('svg[role]').length"))


def _tutorial(folder: Path) -> tuple[Path, Path]:
    """Write the files of the tutorial, run its first parts and return the page they write, and its program."""
    data, *parts, program = blocks_of((FOLDER / "tutorial.md").read_text(encoding="utf-8"), "python")
    folder.mkdir()
    for name, blocks in {"make_data.py": [data], "parts.py": parts, "rentals.py": [program]}.items():
        (folder / name).write_text("\n".join(block.code for block in blocks), encoding="utf-8")
    for name in ("make_data.py", "parts.py"):
        subprocess.run([sys.executable, name], cwd=folder, check=True, capture_output=True)
    return folder / "plan.html", folder / "rentals.py"


async def _of_addresses(addresses: dict[str, tuple[str, int]], folder: Path) -> dict[str, Seen]:
    async with browser_page() as page:
        return {
            name: await picture(page, address, folder / f"{name}.webp", height)
            for name, (address, height) in addresses.items()
        }


def _of_cluster(cluster: ChaosCluster, rentals: Path, folder: Path) -> dict[str, Seen]:
    """Run jobs, one of them the tutorial's, and return what is on the pages while the last one is at work."""
    scripts = {word: cluster.folder / f"{word}.py" for word in ("nightly_risk", "risk_of_today")}
    for script in scripts.values():
        script.write_text(_SCRIPT, encoding="utf-8")
    tutorial = cluster.submit(rentals, "hours", folder=rentals.parent)
    assert tutorial.wait() == 0, tutorial.stderr
    first = cluster.submit(scripts["nightly_risk"], "1")
    assert first.wait() == 0, first.stderr
    job = cluster.submit(scripts["risk_of_today"], "4000")
    cluster.await_state(job.job_id(), "RUNNING")
    at = f"http://localhost:{cluster.port}"
    manager = cluster.get("/taskmanagers")["taskmanagers"][0]["id"]
    pages = {
        "overview": (at, 720),
        "flame-graph": (f"{at}/taskmanagers/{manager}/flame-graph?seconds=2", 580),
        "rentals-job": (f"{at}/jobs/{tutorial.job_id()}/page", 760),
    }
    seen = asyncio.run(_of_addresses(pages, folder))
    cluster.run("job", "cancel", job.job_id())
    job.wait()
    return seen


def _of_history(cluster: ChaosCluster, folder: Path) -> dict[str, Seen]:
    """Stop a cluster and return what the history server shows of its jobs."""
    cluster.script("cluster", "stop")
    port = free_port()
    cluster.script("historyserver", "start", "-D", f"historyserver.web.port={port}")
    try:
        return asyncio.run(_of_addresses({"history": (f"http://localhost:{port}", 450)}, folder))
    finally:
        cluster.script("historyserver", "stop")


def make_pictures(folder: Path, scale: float = 1.0) -> dict[str, Seen]:
    """Run the jobs, write their pictures into a folder and return what is on each."""
    with tempfile.TemporaryDirectory() as name:
        made, files = Path(name), {}
        for picture_name, (job, height) in CAUSES.items():
            place = made / picture_name
            place.mkdir()
            page = place / "page.html"
            page.write_text(profile_page(JOBS[job](Place(place, scale))), encoding="utf-8")
            files[picture_name] = (page.as_uri(), height)
        plan, rentals = _tutorial(made / "tutorial")
        seen = asyncio.run(_of_addresses({**files, "rentals-plan": (plan.as_uri(), 700)}, folder))
        with ChaosCluster(made / "cluster", 2, **{"heartbeat.timeout": "50 s"}) as cluster:
            seen |= _of_cluster(cluster, rentals, folder)
            seen |= _of_history(cluster, folder)
        return seen


def main(words: list[str]) -> int:
    """Write the pictures."""
    folder = Path(words[0]) if words else PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    for name in make_pictures(folder):
        print(f"{folder / name}.webp: {(folder / f'{name}.webp').stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
