"""Files that users name."""
