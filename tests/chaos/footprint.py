"""Footprint: what the processes of a cluster hold, taken again and again; and by how much it grows.

    footprint = Footprint(cluster) ─► take() ... take() ─► growth("rss"), slope_per_take("rss"), report()

A sample is taken while nothing runs: each daemon's resident bytes, descriptors, threads and children (Python workers),
and the temporary files of all of them.
"""

import statistics

import psutil

MEASURES = ("rss", "fds", "threads", "children")


def sample(pid):
    process = psutil.Process(pid)
    children = process.children(recursive=True)
    return {
        "rss": process.memory_info().rss,
        "fds": process.num_fds(),
        "threads": process.num_threads(),
        "children": len(children),
    }


class Footprint:
    def __init__(self, cluster):
        self._cluster = cluster
        self.daemons = {
            f"{kind} {number}": pid
            for kind in ("jobmanager", "taskmanager")
            for number, pid in enumerate(cluster.pids(kind))
        }
        self.takes = {name: [] for name in self.daemons}
        self.temporary_files = []

    def take(self):
        for name, pid in self.daemons.items():
            self.takes[name].append(sample(pid))
        self.temporary_files.append(len(self._cluster.leftovers()))

    def values(self, name, measure, warm=0):
        return [take[measure] for take in self.takes[name][warm:]]

    def growth(self, name, measure, warm):
        """Return the median of the last third of the takes less that of the third after the warm ones."""
        values = self.values(name, measure, warm)
        third = max(1, len(values) // 3)
        return statistics.median(values[-third:]) - statistics.median(values[:third])

    def slope(self, name, measure, warm):
        """Return the growth for each take, by least squares."""
        values = self.values(name, measure, warm)
        if len(values) < 2:
            return 0.0
        return statistics.linear_regression(range(len(values)), values).slope

    def report(self, warm):
        """Return a line for each daemon and measure; resident memory in MiB."""
        lines = []
        for name in self.daemons:
            for measure in MEASURES:
                scale = 2**20 if measure == "rss" else 1
                first, *_ = values = [value / scale for value in self.values(name, measure)]
                slope = self.slope(name, measure, warm) / scale
                rest = values[warm:] or values
                span = f"first {first:g}, then {min(rest):.5g} to {max(rest):.5g}, at last {values[-1]:.5g}"
                lines.append(f"{name} {measure}: {span}; {slope:+.4f} a take of {len(rest)}")
        return "\n".join([*lines, f"temporary files: {self.temporary_files}"])
