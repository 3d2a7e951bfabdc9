"""The arm `stock`, what the tutorials teach: SingleThreadedExecutor and torch, eager."""

from itertools import pairwise

import torch
from rclpy.executors import SingleThreadedExecutor
from safetensors.torch import load_file

from bench.teaching_node import BUNDLE, TeachingNode, serve
from g1_policy_node.paths import find_data


class StockNode(TeachingNode):
    """Runs the network in torch, eager, under inference_mode."""

    def load_network(self) -> None:
        """Build the network from the bundle's weights."""
        weights = load_file(find_data(f'{BUNDLE}/actor.safetensors'))
        sizes = self.contract.network.sizes
        modules: list[torch.nn.Module] = []
        for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            linear = torch.nn.Linear(fan_in, fan_out)
            linear.weight.data = weights[f'layers.{i}.weight']
            linear.bias.data = weights[f'layers.{i}.bias']
            modules += [linear, torch.nn.ELU()]
        self.network = torch.nn.Sequential(*modules[:-1])

    @torch.inference_mode()
    def forward(self, observation: list[float]) -> list[float]:
        """Return the raw action of an observation."""
        return self.network(torch.tensor(observation, dtype=torch.float32)).tolist()


if __name__ == '__main__':
    serve(StockNode, SingleThreadedExecutor)
