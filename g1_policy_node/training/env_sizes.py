"""Sizes of the walking task that need no simulator to be known."""

PRIVILEGED = 6
"""What only the critic sees: linear velocity 3, height 1, feet touching 2."""
