"""Measures the router beside what the ROS tutorials teach, in one session: `make bench`."""
