"""Tests of the exchange: buffers, partitions, writers, gates."""
