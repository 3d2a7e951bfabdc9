"""Tapes: rosbag2 folders of the interface's topics, and what is measured with them."""
