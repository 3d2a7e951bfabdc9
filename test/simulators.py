"""The simulators that the tests of a driver run against."""

import importlib.util

import pytest

NEEDS_ISAAC_LAB = pytest.mark.skipif(
    importlib.util.find_spec('isaaclab') is None,
    reason='Isaac Lab is not installed here: make test-train',
)
SIMULATORS = ['mujoco', pytest.param('isaac', marks=[NEEDS_ISAAC_LAB, pytest.mark.timeout(600)])]
