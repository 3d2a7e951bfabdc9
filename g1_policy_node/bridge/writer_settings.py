"""What the node tells a writer process on its command line."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class WriterSettings:
    """Slots, mark of this bridge's senders, bundle folder, DDS domain and interface, times in s, accepted findings."""

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
