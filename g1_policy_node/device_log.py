"""What became of the devices while the node ran: switches, and failures in a tick."""

from typing import Any

from g1_policy_node.policy import DeviceFailure


class DeviceLog:
    """Keeps every switch and failure; `latched` is a failure nobody has answered by a switch."""

    def __init__(self) -> None:
        self.latched: DeviceFailure | None = None
        self._switches: list[dict[str, Any]] = []
        self._failures: list[dict[str, Any]] = []

    def switched(self, tick_ns: int, device: str) -> None:
        """Note a switch that was asked for; the failure before it counts as seen."""
        self.latched = None
        self._switches.append({'tick_ns': tick_ns, 'device': device})

    def failed(self, tick_ns: int, failure: DeviceFailure) -> str:
        """Note a failure that the cpu has answered; return what to tell about it."""
        self.latched = failure
        self._failures.append({'tick_ns': tick_ns, **failure._asdict()})
        return (
            f'{failure.device} failed in a tick, which the cpu answered: {failure.reason}; '
            'it stays on cpu until device is set again'
        )

    def facts(self) -> dict[str, Any]:
        """Return what node.json says about it."""
        return {'switches': self._switches, 'device_failures': self._failures}
