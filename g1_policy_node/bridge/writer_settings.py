"""What the node tells a writer process on its command line."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class WriterSettings:
    """What a writer needs: times in s.

    `descriptors` of the slots; `mark` that this bridge's senders bear; `policy` the bundle's
    folder; the robot's DDS `domain` and `interface`; `accept`ed findings of hardware.py.
    """

    descriptors: tuple[int, ...]
    mark: str
    policy: str
    domain: int
    interface: str
    command_timeout: float
    linger: float
    accept: tuple[str, ...]

    def text(self) -> str:
        """Return this as one argument."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> 'WriterSettings':
        """Return what `text` said."""
        values = json.loads(text)
        values['descriptors'] = tuple(values['descriptors'])
        values['accept'] = tuple(values['accept'])
        return cls(**values)
