"""Sources and sinks: reading, splitting, writing."""
