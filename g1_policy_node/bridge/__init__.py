"""The bridge to the real robot: Unitree's LowState and LowCmd on one side, ROS on the other."""
