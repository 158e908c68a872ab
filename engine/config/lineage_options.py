"""Options of lineage. Declared as those of ``options``, which has them all.

Held by: tests/lineage/test_events.py
"""

from __future__ import annotations

from engine.config.config_option import declared as _option

LINEAGE_ENABLED = _option(
    "lineage.enabled",
    "bool",
    "false",
    "Send events of OpenLineage for each execute(), to where the configuration of its client says: OPENLINEAGE_URL, or "
    "the file that OPENLINEAGE_CONFIG names.",
)
LINEAGE_NAMESPACE = _option("lineage.namespace", "string", "drey", "Namespace of the names of jobs in OpenLineage.")
