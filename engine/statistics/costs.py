"""Costs: network, disk and cpu in bytes, each known or UNKNOWN, with heuristic ones beside them.

    Costs(network, disk, cpu, heuristic_network, heuristic_disk, heuristic_cpu)

Adding keeps UNKNOWN unknown. Comparing never lets an unknown cost win by accident: if both sides know all three, the
smaller total decides (network + disk + cpu * CPU_WEIGHT, in bytes moved; equal totals by network, disk, cpu); if
either knows less, the heuristic costs decide, network first, then disk, then cpu, and what is known plays no part.

Ship strategies:

    FORWARD                  0
    hash, random, rebalance  bytes, times the load of the busiest subtask: p * its share of rows (a heavy key's)
    BROADCAST                bytes * parallelism of the consumer

Local: building and probing touch every byte once (cpu); a build side larger than its memory writes and reads the
part of both sides that does not fit (disk).

Source: Flink's Costs and DefaultCostEstimator; there network decides alone and cpu is a tie-breaker.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engine.statistics.estimates import UNKNOWN, Estimates

#: cost of a byte touched in memory, relative to one on the network or the disk
CPU_WEIGHT = 0.1
#: bytes that a cost assumes when sizes are unknown
HEURISTIC_BASE = 1_000_000_000.0
#: cost of broadcasting data of unknown size, relative to a repartitioning, per receiver
HEURISTIC_BROADCAST = 10.0


class Costs(msgspec.Struct, frozen=True):
    """Cost of a channel, a node or a whole plan, in bytes."""

    network: float = 0.0
    disk: float = 0.0
    cpu: float = 0.0
    heuristic_network: float = 0.0
    heuristic_disk: float = 0.0
    heuristic_cpu: float = 0.0

    def __add__(self, other: Costs) -> Costs:
        return total_costs((self, other))

    @property
    def is_known(self) -> bool:
        """Whether all three costs are numbers."""
        return UNKNOWN not in (self.network, self.disk, self.cpu)

    @property
    def total(self) -> float:
        """The known costs as one number of bytes, or UNKNOWN."""
        return self.network + self.disk + self.cpu * CPU_WEIGHT if self.is_known else UNKNOWN

    def __lt__(self, other: Costs) -> bool:
        if self.is_known and other.is_known:
            own = (self.total, self.network, self.disk, self.cpu)
            return own < (other.total, other.network, other.disk, other.cpu)
        own = (self.heuristic_network, self.heuristic_disk, self.heuristic_cpu, 0.0)
        return own < (other.heuristic_network, other.heuristic_disk, other.heuristic_cpu, 0.0)


NO_COST = Costs()


def total_costs(parts: Iterable[Costs]) -> Costs:
    """Return the sum of costs, added from the first to the last."""
    network = disk = cpu = heuristic_network = heuristic_disk = heuristic_cpu = 0.0
    for part in parts:
        network = UNKNOWN if UNKNOWN in (network, part.network) else network + part.network
        disk = UNKNOWN if UNKNOWN in (disk, part.disk) else disk + part.disk
        cpu = UNKNOWN if UNKNOWN in (cpu, part.cpu) else cpu + part.cpu
        heuristic_network += part.heuristic_network
        heuristic_disk += part.heuristic_disk
        heuristic_cpu += part.heuristic_cpu
    return Costs(network, disk, cpu, heuristic_network, heuristic_disk, heuristic_cpu)


def forward_cost() -> Costs:
    """Return the cost of rows that stay where they are."""
    return NO_COST


def repartition_cost(estimates: Estimates, parallelism: int, heaviest_share: float = 0.0) -> Costs:
    """Return the cost of sending every row to one of ``parallelism`` subtasks.

    heaviest_share: share of rows that go to one subtask whatever happens (rows of one key), 0..1.
    """
    load = max(1.0, parallelism * heaviest_share)
    size = estimates.size_bytes * load if estimates.is_size_known else UNKNOWN
    return Costs(network=size, heuristic_network=HEURISTIC_BASE)


def broadcast_cost(estimates: Estimates, parallelism: int) -> Costs:
    """Return the cost of sending every row to all subtasks."""
    size = estimates.size_bytes * parallelism if estimates.is_size_known else UNKNOWN
    return Costs(network=size, heuristic_network=HEURISTIC_BASE * HEURISTIC_BROADCAST * parallelism)


def hash_join_cost(
    build: Estimates,
    probe: Estimates,
    build_copies: int,
    parallelism: int,
    memory_bytes: int,
    table_bytes: float | None = None,
    *,
    is_shared: bool = False,
) -> Costs:
    """Return the cost of building and probing in all subtasks together.

    build_copies: 1 when the build side is spread over the subtasks, else one for each (broadcast).
    memory_bytes: of the pool of one subtask.
    table_bytes: of the table in each subtask, where it is not as large as the rows.
    is_shared: whether all subtasks probe one broadcast table: one reads the rows, and the others wait for its table.
    """
    if not (build.is_size_known and probe.is_size_known):
        heuristic = HEURISTIC_BASE * (1 if build_copies == 1 else HEURISTIC_BROADCAST)
        return Costs(disk=UNKNOWN, cpu=UNKNOWN, heuristic_disk=heuristic, heuristic_cpu=heuristic)
    if table_bytes is None:
        table_bytes = build.size_bytes * build_copies / parallelism
    spilled_share = max(0.0, 1 - memory_bytes / table_bytes) if table_bytes else 0.0
    touched = build.size_bytes * (1 if is_shared else build_copies) + probe.size_bytes
    # every build byte is written into the table besides being read, so the smaller side is the better one to build
    return Costs(disk=2 * spilled_share * touched, cpu=touched + build.size_bytes * build_copies)


def sort_merge_join_cost(left: Estimates, right: Estimates, parallelism: int, memory_bytes: int) -> Costs:
    """Return the cost of sorting both sides in all subtasks together, each in half of the memory, and merging them.

    memory_bytes: of the pool of one subtask.
    """
    if not (left.is_size_known and right.is_size_known):
        heuristic = 2 * HEURISTIC_BASE
        return Costs(disk=UNKNOWN, cpu=UNKNOWN, heuristic_disk=heuristic, heuristic_cpu=heuristic)
    sizes = (left.size_bytes, right.size_bytes)
    spilled = sum(size for size in sizes if size > parallelism * memory_bytes / 2)
    # written into pages, sorted, read in order: three times every byte
    return Costs(disk=2 * spilled, cpu=3 * sum(sizes))


def partitioned_asof_cost(left: Estimates, right: Estimates, parallelism: int, memory_bytes: int) -> Costs:
    """Return the cost of parting both sides in all subtasks together and joining part by part.

    memory_bytes: of the pool of one subtask.
    """
    sorting = sort_merge_join_cost(left, right, parallelism, memory_bytes)
    if not sorting.is_known:
        return msgspec.structs.replace(sorting, heuristic_cpu=sorting.heuristic_cpu / 2)
    # written into pages and read in their order; what is in order of time already is not sorted
    return msgspec.structs.replace(sorting, cpu=2 * (left.size_bytes + right.size_bytes))


def local_cost(estimates: Estimates, memory_bytes: int, parallelism: int, *, keeps_rows: bool = False) -> Costs:
    """Return the cost of an operator over one input: every byte touched, what does not fit written and read."""
    if not estimates.is_size_known:
        return Costs(disk=UNKNOWN if keeps_rows else 0.0, cpu=UNKNOWN, heuristic_cpu=HEURISTIC_BASE)
    does_not_fit = keeps_rows and estimates.size_bytes > memory_bytes * parallelism
    return Costs(disk=2 * estimates.size_bytes if does_not_fit else 0.0, cpu=estimates.size_bytes)
