"""Runs a learned walking policy on a Unitree G1 over ROS 2, and times every stage."""

__version__ = '0.1.0'
