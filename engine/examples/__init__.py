"""Jobs to start from: the skewed join of instruments and currencies, and the generator of its data."""
