"""Options for tests: what happens seldom is made to happen. Declared as those of ``options``, which has them all.

Held by: tests/config/test_loader.py
"""

from __future__ import annotations

from engine.config.config_option import declared as _option

FORCE_SPILL = _option(
    "debug.force-spill", "bool", "false", "Every blocking operator spills after a few rows, for tests of spilling."
)
SMALL_PART_SIZE = _option(
    "debug.small-part-size",
    "size",
    None,
    "Largest input of a plan's part that runs in one subtask, even with a parallelism set. Default: as "
    "measured. For tests.",
)
FAULT_POINT = _option(
    "debug.fault-point",
    "string",
    "",
    "Points at which a process of the cluster kills (kill), stops (stop) or fails (fail) itself, once: "
    "POINT:ACTION:MARKER-FILE, separated by commas. For tests.",
)
CHECK_GATEWAYS = _option(
    "debug.check-gateways",
    "bool",
    "false",
    "Encode and decode every message between components, also within one process. For tests.",
)
