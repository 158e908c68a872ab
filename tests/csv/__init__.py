"""CSV: splitting, reading, writing."""
