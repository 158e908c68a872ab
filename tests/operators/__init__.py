"""Whole attempts without a cluster: a descriptor, real services, and what is left afterwards."""
