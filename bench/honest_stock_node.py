"""The arm `honest stock`: the same node with the best of what is there, nothing of ours.

EventsExecutor by spin_once in a loop (its spin() does not work in these wheels) and onnxruntime.
"""

import os

import numpy as np
import onnxruntime
from rclpy.experimental import EventsExecutor

from bench.teaching_node import TeachingNode, serve


class HonestStockNode(TeachingNode):
    """Runs the network in onnxruntime on one thread."""

    def load_network(self) -> None:
        """Load the network that `make bench` exported to $BENCH_ONNX."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.network = onnxruntime.InferenceSession(
            os.environ['BENCH_ONNX'], options, providers=['CPUExecutionProvider']
        )
        self.input = self.network.get_inputs()[0].name

    def forward(self, observation: list[float]) -> list[float]:
        """Return the raw action of an observation."""
        row = np.array([observation], dtype=np.float32)
        return self.network.run(None, {self.input: row})[0][0].tolist()


if __name__ == '__main__':
    serve(HonestStockNode, EventsExecutor)
