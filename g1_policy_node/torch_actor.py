"""The actor in torch, on any device torch has. Imported only where it is asked for."""

import numpy as np

from g1_policy_node.actor import Row, Weights
from g1_policy_node.contract import NetworkContract
from g1_policy_node.types import UserError

try:
    import torch
except ImportError as error:
    raise UserError(f'only cpu runs without torch, and torch is not installed ({error})') from None


class TorchActor:
    """The forward pass in torch; it returns when the action is on the host.

    TF32 is off, so that a GPU gives the cpu's actions within ACTION_TOLERANCE.
    """

    def __init__(self, network: NetworkContract, weights: Weights, device: str) -> None:
        self.device = device
        self._torch_device = _open_device(device)
        torch.backends.cuda.matmul.allow_tf32 = False
        modules: list[torch.nn.Module] = []
        activation = {'elu': torch.nn.ELU, 'relu': torch.nn.ReLU, 'tanh': torch.nn.Tanh}
        for i, (fan_in, fan_out) in enumerate(zip(network.sizes, network.sizes[1:], strict=False)):
            linear = torch.nn.Linear(fan_in, fan_out)
            linear.weight.data = torch.tensor(weights[f'layers.{i}.weight'])
            linear.bias.data = torch.tensor(weights[f'layers.{i}.bias'])
            modules += [linear, activation[network.activation]()]
        self._net = torch.nn.Sequential(*modules[:-1]).to(self._torch_device)
        self._mean, self._divisor = (
            torch.tensor(weights[key]).to(self._torch_device) if key in weights else None
            for key in ('normalizer.mean', 'normalizer.divisor')
        )
        self._input = torch.zeros(network.sizes[0])

    @torch.inference_mode()
    def __call__(self, observation: Row) -> Row:
        """Return the raw action (N,) for one observation (n,), copies included."""
        self._input.numpy()[:] = observation
        x = self._input.to(self._torch_device)
        if self._mean is not None and self._divisor is not None:
            x = (x - self._mean) / self._divisor
        result: np.ndarray = self._net(x).cpu().numpy()
        return result


def _open_device(device: str) -> torch.device:
    """Return the torch device after a real computation on it; UserError where it fails."""
    try:
        opened = torch.device(device)
        probe = torch.ones(2, 2, device=opened)
        if float((probe @ probe).sum().cpu()) != 8.0:
            raise UserError(f'{device}: a 2x2 product came out wrong on this device')
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        built = torch.version.cuda or 'none'
        raise UserError(
            f'{device} cannot be used: {first} (torch {torch.__version__}, CUDA build {built})'
        ) from None
    return opened
