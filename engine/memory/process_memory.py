"""From the one number a person sets, the size of a TaskManager process, to the shares of everything in it.

    taskmanager.memory.process.size                       all of it
    ├── base                                              interpreter and libraries: fixed, 192 MiB or a quarter
    └── rest
        ├── network      taskmanager.memory.network.fraction (0.1) of the rest, within .min (64mb) and .max
        ├── managed      taskmanager.memory.managed.size, or .fraction (0.4) of the rest: pages of operators
        ├── workers      what is left, one half: Python worker processes of all slots
        └── arrow        the other half: record batches on their way

    process_memory({"taskmanager.memory.process.size": "1728m"}).table()      the lines that are printed at start

The network share is a wish (the pool is sized from the job and degrades), so its minimum gives way before anything
else does. An absolute managed size wins over the fraction and may be small: every operator runs with six pages.

Invariant: the shares and the base add up to the process size exactly. Pure: reads no machine and no configuration
file. Source: Flink's TaskExecutorProcessUtils; arrow and workers take the place of heap and framework memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from engine.config.sizes import format_size, parse_size
from engine.errors import ConfigurationError

PROCESS_SIZE = "taskmanager.memory.process.size"
MANAGED_FRACTION = "taskmanager.memory.managed.fraction"
MANAGED_SIZE = "taskmanager.memory.managed.size"
NETWORK_FRACTION = "taskmanager.memory.network.fraction"
NETWORK_MIN = "taskmanager.memory.network.min"
NETWORK_MAX = "taskmanager.memory.network.max"

_DEFAULTS: dict[str, Any] = {
    PROCESS_SIZE: "1728m",
    MANAGED_FRACTION: 0.4,
    NETWORK_FRACTION: 0.1,
    NETWORK_MIN: "4mb",
    NETWORK_MAX: "64mb",
}
_BASE_BYTES = 192 << 20
PROCESS_SIZE_MIN_BYTES = 32 << 20
_MANAGED_MIN_BYTES = 6 * 4096


class ProcessMemory(msgspec.Struct, frozen=True):
    """How the memory of one TaskManager process is divided, in bytes."""

    process_bytes: int
    base_bytes: int
    network_bytes: int
    managed_bytes: int
    workers_bytes: int
    arrow_bytes: int
    #: where the managed share comes from: its key and value
    managed_source: str

    def table(self) -> str:
        """Return the division as lines of text, one share each, with its part of the process."""
        rows = [
            ("interpreter and libraries", self.base_bytes, ""),
            ("network buffers", self.network_bytes, f"{NETWORK_FRACTION}, .min, .max"),
            ("managed (sort, join, group)", self.managed_bytes, self.managed_source),
            ("Python workers", self.workers_bytes, "half of the rest"),
            ("Arrow batches", self.arrow_bytes, "half of the rest"),
            ("process", self.process_bytes, PROCESS_SIZE),
        ]
        return "\n".join(
            f"{name:<28}{format_size(size):>10}{size / self.process_bytes:>7.0%}  {source}".rstrip()
            for name, size, source in rows
        )


def process_memory(configuration: Mapping[str, Any]) -> ProcessMemory:
    """Divide a process's memory.

    Args: configuration: the keys above; those that are missing (or None) have their defaults.
    Raises: ConfigurationError naming the key.
    """
    process = _size(configuration, PROCESS_SIZE)
    if process < PROCESS_SIZE_MIN_BYTES:
        raise ConfigurationError(
            f"{PROCESS_SIZE}: {format_size(process)} is too small, at least {format_size(PROCESS_SIZE_MIN_BYTES)} "
            "are needed"
        )
    base = min(_BASE_BYTES, process // 4)
    rest = process - base
    managed, source = _managed(configuration, rest)
    network_min, network_max = _size(configuration, NETWORK_MIN), _size(configuration, NETWORK_MAX)
    if network_min > network_max:
        raise ConfigurationError(
            f"{NETWORK_MIN}: {format_size(network_min)} is more than {NETWORK_MAX}: {format_size(network_max)}"
        )
    network = max(int(rest * _fraction(configuration, NETWORK_FRACTION)), network_min)
    network = min(network, network_max, (rest - managed) // 2)
    workers = (rest - managed - network) // 2
    return ProcessMemory(
        process_bytes=process,
        base_bytes=base,
        network_bytes=network,
        managed_bytes=managed,
        workers_bytes=workers,
        arrow_bytes=rest - managed - network - workers,
        managed_source=source,
    )


def _managed(configuration: Mapping[str, Any], rest: int) -> tuple[int, str]:
    """Return the managed bytes and where they come from."""
    if configuration.get(MANAGED_SIZE) is None:
        fraction = _fraction(configuration, MANAGED_FRACTION)
        managed, source = int(rest * fraction), f"{MANAGED_FRACTION}: {fraction:g}"
    else:
        managed = _size(configuration, MANAGED_SIZE)
        source = f"{MANAGED_SIZE}: {configuration[MANAGED_SIZE]}"
    if managed > rest:
        raise ConfigurationError(
            f"{source} does not fit into {PROCESS_SIZE}: {format_size(rest)} are there for everything but the "
            "interpreter; raise the process size or lower the managed size"
        )
    if managed < _MANAGED_MIN_BYTES:
        raise ConfigurationError(f"{source} is too small: an operator needs {format_size(_MANAGED_MIN_BYTES)}")
    return managed, source


def _size(configuration: Mapping[str, Any], key: str) -> int:
    value = configuration.get(key)
    return parse_size(_DEFAULTS[key] if value is None else value, key)


def _fraction(configuration: Mapping[str, Any], key: str) -> float:
    value = configuration.get(key)
    try:
        fraction = float(_DEFAULTS[key] if value is None else value)
    except (TypeError, ValueError):
        fraction = -1.0
    if not 0.0 <= fraction < 1.0:
        raise ConfigurationError(f"{key}: {value!r} is not a fraction; write a number from 0 to below 1, such as 0.4")
    return fraction
