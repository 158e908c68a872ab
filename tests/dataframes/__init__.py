"""Plans on a real Spark, beside the same plans on the embedded cluster."""
