"""Sizes of the walking task that need no simulator to be known."""

PRIVILEGED = 9
"""What only the critic sees: linear velocity 3, height 1, feet touching 2, mean error of the
velocity against the command 3."""
