"""A live view of a run in the browser: the robot, the command, the figures."""
