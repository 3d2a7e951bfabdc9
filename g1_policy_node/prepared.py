"""Everything a tick uses, loaded, checked and warmed before arming."""

import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from g1_policy_node import __version__
from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import Bundle, check_actor, load_bundle, resolve_bundle
from g1_policy_node.command import CommandFollower
from g1_policy_node.device_log import DeviceLog
from g1_policy_node.devices import ActorPool, predicted_p99, prepared_devices
from g1_policy_node.inputs import InputGate
from g1_policy_node.modes import ModeLatch
from g1_policy_node.policy import Policy
from g1_policy_node.realtime import Realtime
from g1_policy_node.router import Router
from g1_policy_node.safety import SafetyGate, SafetyLimits

ACT_BUDGET = 0.5
"""Share of a period that a pass may take at its p99: the rest of a tick needs the other half."""

PREDICTION_PASSES = 100
"""Two seconds at the walk's period, before arming."""


class Settings(NamedTuple):
    """The node's parameters at configuration."""

    policy: str
    device: str
    devices: tuple[str, ...]
    auto_run: bool
    state_timeout_ns: int
    cmd_timeout_ns: int
    hold_timeout_ns: int
    limits: SafetyLimits
    imu_frames: tuple[str, ...]
    cmd_vel_stamped: bool
    run_dir: Path | None
    realtime: Realtime = Realtime()


class Prepared(NamedTuple):
    """A bundle, its actors on every prepared device, and the router over them."""

    bundle: Bundle
    actors: ActorPool
    router: Router
    log: DeviceLog

    def title(self) -> str:
        """Return a line on which policy this is."""
        bundle = self.bundle
        return (
            f'policy {bundle.path}: weights {bundle.weights_sha256[:16]}, '
            f'contract {bundle.contract_sha256[:16]}, {bundle.contract.observation_size} inputs'
        )

    def counters(self) -> dict[str, int]:
        """Return how often each check of inputs, command and target has spoken."""
        router = self.router
        inputs, command, safety = router.inputs, router.command, router.safety
        # Unpacked in one step each, as the control thread may add a name meanwhile.
        return {
            **inputs.counters,
            **command.counters,
            **safety.counters,
            **router.held_for,
        }

    def facts(self) -> dict[str, str]:
        """Return what identifies the policy and where it runs."""
        return {
            'policy': str(self.bundle.path),
            'device': self.router.policy.actor.device,
            'weights_sha256': self.bundle.weights_sha256,
            'contract_sha256': self.bundle.contract_sha256,
        }

    def device_facts(self) -> dict[str, Any]:
        """Return what is known of the devices, and what became of them."""
        return {
            'devices': list(self.actors.differences),
            'golden_difference': self.actors.differences,
            'predicted_p99_ms': {d: p99 * 1e3 for d, p99 in self.actors.predicted.items()},
            'dtype': 'float32',
            'threads': 1,
            **self.log.facts(),
        }


def prepare(
    settings: Settings, modes: ModeLatch, stopwatch: Callable[[], int] = time.monotonic_ns
) -> Prepared:
    """Load and check the bundle on every device; UserError says what does not fit."""
    settings.realtime.check()
    bundle = load_bundle(resolve_bundle(settings.policy))
    actors = ActorPool(
        prepared_devices(settings.devices),
        lambda device: load_actor(bundle.contract.network, bundle.weights, device),
        lambda actor, every: check_actor(bundle, actor, every),
        lambda actor: predicted_p99(
            actor, bundle.golden_observations[:PREDICTION_PASSES], bundle.contract.step_dt
        ),
        bundle.contract.step_dt * ACT_BUDGET,
    )
    router = Router(
        bundle.contract,
        Policy(bundle.contract, actors.get(settings.device), reserve=actors.get('cpu')),
        InputGate(
            bundle.contract, settings.limits, settings.state_timeout_ns, settings.imu_frames
        ),
        SafetyGate(bundle.contract, settings.limits, bundle.golden_observations),
        CommandFollower(bundle.contract.command_limits, settings.cmd_timeout_ns),
        modes,
        hold_timeout_ns=settings.hold_timeout_ns,
        auto_run=settings.auto_run,
        stopwatch=stopwatch,
    )
    return Prepared(bundle, actors, router, DeviceLog())


def versions() -> dict[str, Any]:
    """Return the versions of what runs the policy; null for what is not loaded."""
    torch = sys.modules.get('torch')
    return {
        'g1_policy_node': __version__,
        'python': platform.python_version(),
        'numpy': np.__version__,
        'torch': getattr(torch, '__version__', None),
        'cuda': torch.version.cuda if torch else None,
    }
