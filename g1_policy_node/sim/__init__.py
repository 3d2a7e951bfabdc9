"""Simulated robots: the same topics and services as the real one."""
