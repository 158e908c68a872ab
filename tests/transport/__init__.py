"""Tests of the transport: frames, connections, servers, TLS."""
