"""The actor in torch, on any device torch has. Imported only where it is asked for.

A pass is three stages: observation to the device, forward, action to the host. On CUDA they are
captured once as a graph over page-locked host memory, and a pass is one launch of it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.actor import Row, Weights
from g1_policy_node.contract import NetworkContract
from g1_policy_node.types import UserError

try:
    import torch
except ImportError as error:
    raise UserError(f'only cpu runs without torch, and torch is not installed ({error})') from None

# A pool of threads costs more than one row of this network, and starves its neighbours.
torch.set_num_threads(1)

CAPTURE_WARM_UP = 3
"""Passes before a capture, as CUDA's libraries allocate on their first ones."""


class TorchActor:
    """The forward pass of `batch` rows, stage by stage; it returns when the action is on the host.

    TF32 is off, so that a GPU gives the cpu's actions within ACTION_TOLERANCE. `stages` are the
    parts of a pass by name; on CUDA they only enqueue work on `stream`.
    """

    def __init__(
        self, network: NetworkContract, weights: Weights, device: str, batch: int = 1
    ) -> None:
        self.device = device
        self._torch_device = _open_device(device)
        self._on_cuda = self._torch_device.type == 'cuda'
        torch.backends.cuda.matmul.allow_tf32 = False
        self._net = _network(network, weights).to(self._torch_device)
        self._mean, self._divisor = (
            torch.tensor(weights[key]).to(self._torch_device) if key in weights else None
            for key in ('normalizer.mean', 'normalizer.divisor')
        )
        shapes = (batch, network.sizes[0]), (batch, network.sizes[-1])
        self._host_in, self._host_out = (
            torch.zeros(shape, pin_memory=self._on_cuda) for shape in shapes
        )
        self._input, self._output = (
            torch.zeros(shape, device=self._torch_device) for shape in shapes
        )
        self._observation: NDArray[np.float32] = self._host_in.numpy()
        actions: NDArray[np.float32] = self._host_out.numpy()
        self._action = actions[0] if batch == 1 else actions
        self.stream: Any = None
        if self._on_cuda:
            self.stream = torch.cuda.Stream(self._torch_device)  # type: ignore[no-untyped-call]
        self.stages: dict[str, Callable[[], None]] = {
            'host_to_device': self._upload,
            'forward': self._forward,
            'device_to_host': self._download,
        }

    @torch.inference_mode()
    def __call__(self, observation: Row) -> Row:
        """Return the raw action (N,) for one observation (n,), or (batch, N) for (batch, n)."""
        self.write(observation)
        self.start()
        self.wait()
        return self._action

    def write(self, observation: Row) -> None:
        """Take the observation into the host buffer."""
        self._observation[...] = observation

    def start(self) -> None:
        """Run every stage; on CUDA they are only under way then."""
        if self.stream is None:
            self.launch()
        else:
            with torch.cuda.stream(self.stream):
                self.launch()

    def wait(self) -> None:
        """Wait until the action is on the host."""
        if self.stream is not None:
            self.stream.synchronize()

    def launch(self) -> None:
        """Run every stage on what the host buffer holds; on CUDA without waiting for it."""
        for stage in self.stages.values():
            stage()

    def _upload(self) -> None:
        self._input.copy_(self._host_in, non_blocking=True)

    def _forward(self) -> None:
        x = self._input
        if self._mean is not None and self._divisor is not None:
            x = (x - self._mean) / self._divisor
        self._output.copy_(self._net(x))

    def _download(self) -> None:
        self._host_out.copy_(self._output, non_blocking=True)


class GraphActor(TorchActor):
    """The same, as one captured CUDA graph: the path of every CUDA device."""

    def __init__(
        self, network: NetworkContract, weights: Weights, device: str, batch: int = 1
    ) -> None:
        super().__init__(network, weights, device, batch)
        try:
            self._graph = capture(self, super().launch)
        except RuntimeError as error:
            raise UserError(
                f'{device}: no CUDA graph of the network: {first_line(error)}'
            ) from None

    def launch(self) -> None:
        """Replay the graph, without waiting for it."""
        self._graph.replay()


@torch.inference_mode()
def capture(actor: TorchActor, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """Return `work`, which enqueues on the actor's stream, as a graph."""
    assert actor.stream is not None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(actor.stream):
        for _ in range(CAPTURE_WARM_UP):
            work()
        actor.stream.synchronize()
        # What other threads do on a GPU of their own must not fail this capture.
        with torch.cuda.graph(graph, stream=actor.stream, capture_error_mode='thread_local'):
            work()
    return graph


def first_line(error: Exception) -> str:
    """Return what torch says first; the lines below are advice on debugging it."""
    return (str(error).splitlines() or [repr(error)])[0]


def _network(network: NetworkContract, weights: Weights) -> torch.nn.Sequential:
    modules: list[torch.nn.Module] = []
    activation = {'elu': torch.nn.ELU, 'relu': torch.nn.ReLU, 'tanh': torch.nn.Tanh}
    for i, (fan_in, fan_out) in enumerate(zip(network.sizes, network.sizes[1:], strict=False)):
        linear = torch.nn.Linear(fan_in, fan_out)
        linear.weight.data = torch.tensor(weights[f'layers.{i}.weight'])
        linear.bias.data = torch.tensor(weights[f'layers.{i}.bias'])
        modules += [linear, activation[network.activation]()]
    return torch.nn.Sequential(*modules[:-1])


def _open_device(device: str) -> torch.device:
    """Return the torch device after a real computation on it; UserError where it fails."""
    try:
        opened = torch.device(device)
        probe = torch.ones(2, 2, device=opened)
        if float((probe @ probe).sum().cpu()) != 8.0:
            raise UserError(f'{device}: a 2x2 product came out wrong on this device')
    except (RuntimeError, AssertionError) as error:
        built = torch.version.cuda or 'none'
        raise UserError(
            f'{device} cannot be used: {first_line(error)} '
            f'(torch {torch.__version__}, CUDA build {built})'
        ) from None
    return opened
