"""What the documentation shows runs as it stands there, and what it links to is there."""
