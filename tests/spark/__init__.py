"""The data pipeline around the engine, with a real Spark."""
