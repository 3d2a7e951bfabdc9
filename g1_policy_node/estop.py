"""A service on a thread of its own: the e-stop waits behind no other request."""

import threading
from collections.abc import Callable

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from std_srvs.srv import Trigger

from g1_policy_node.newest import LeftToUs

POLL_S = 0.1
"""How often the thread looks whether it is to end."""


class PromptTrigger:
    """A Trigger service that no executor serves.

    An executor has one thread here, and a device switch, a flood of parameter requests or a slow
    disk may keep it. `answer` fills the response, and must be fit for any thread.
    """

    def __init__(
        self,
        node: Node,
        name: str,
        answer: Callable[[Trigger.Request, Trigger.Response], Trigger.Response],
    ) -> None:
        self._node, self._answer = node, answer
        self._service = node.create_service(Trigger, name, answer, callback_group=LeftToUs())
        # As command_inbox.py does for a subscription: one service and nothing else.
        self._wait_set = rclpy_implementation.WaitSet(0, 0, 0, 0, 1, 0, node.context.handle)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve_all, name='e-stop', daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._thread.join()

    def _serve_all(self) -> None:
        while not self._stopping.is_set() and self._node.context.ok():
            try:
                self._serve_one()
            except Exception as error:  # the next request must find somebody
                self._node.get_logger().error(f'error in {self._service.srv_name}: {error!r}')
                self._stopping.wait(POLL_S)

    def _serve_one(self) -> None:
        """Wait for a request, at most POLL_S, and answer it."""
        with self._service.handle:
            self._wait_set.clear_entities()
            self._wait_set.add_service(self._service.handle)
            self._wait_set.wait(int(POLL_S * 1e9))
            request, header = self._service.handle.service_take_request(Trigger.Request)
        if request is not None:
            self._service.send_response(self._answer(request, Trigger.Response()), header)
