"""What a user can choose about a training run: the one table of `g1-policy train`."""

import math
from dataclasses import dataclass, fields
from pathlib import Path

from g1_policy_node.bringup import option
from g1_policy_node.types import UserError

INTERRUPTED = 130
"""How training ends when it was asked to stop: its checkpoint is written."""


@dataclass(frozen=True)
class TrainOptions:
    """The command line and train.launch.py are made from this table."""

    num_envs: int = option(0, 'robots at once, on each GPU; 0: as in config')
    device: str = option('', 'cuda:0, cpu ...; empty: as in config')
    iterations: int = option(0, 'iterations of this run; 0: max_iterations of config')
    time_limit: float = option(0.0, 'stop cleanly after so many seconds; 0: no limit')
    resume: str = option('', 'checkpoint (model_N.pt) to go on from')
    teacher: str = option('', 'bundle of a policy that walks, to imitate first')
    gpus: int = option(1, 'processes of one training on this host, one for each GPU')
    contract: str = option('', 'contract file; empty: config/g1_walk_contract.yaml')
    config: str = option('', 'PPO configuration; empty: config/rsl_rl_ppo_cfg.yaml')
    seed: int = option(-1, 'seed; -1: as in config')
    action_std: float = option(0.0, 'deviation of actions to begin with; 0: as it is')
    stage_times: bool = option(False, 'time every second iteration stage by stage')
    sweep: str = option('', 'numbers of robots to measure, such as 512,1024; trains nothing')
    bundle: bool = option(True, 'make a policy bundle at the end')
    run_dir: str = option('', 'folder for the evidence; empty: a new one under runs/')

    def __post_init__(self) -> None:
        """Refuse what no training could make sense of."""
        for name, least in (('num_envs', 0), ('iterations', 0), ('gpus', 1), ('seed', -1)):
            if getattr(self, name) < least:
                raise UserError(f'{name}: {getattr(self, name)} is less than {least}')
        if not 0 <= self.action_std < math.inf:
            raise UserError(f'action_std: {self.action_std:g} is no deviation')
        if self.time_limit < 0:
            raise UserError(f'time_limit: {self.time_limit:g} s is negative')
        for name in ('resume', 'contract', 'config'):
            path = getattr(self, name)
            if path and not Path(path).is_file():
                raise UserError(f'{name}: no file {path}')
        self.sweep_sizes()

    def arguments(self) -> list[str]:
        """Return what to type after `g1-policy train` for these options."""
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        changed = {n: value for n, value in given.items() if value != getattr(type(self), n)}
        return [f'--{name.replace("_", "-")}={value}' for name, value in changed.items()]

    def sweep_sizes(self) -> tuple[int, ...]:
        """Return the numbers of robots of a sweep, ascending; empty: none is asked for."""
        try:
            sizes = sorted({int(item) for item in self.sweep.split(',')}) if self.sweep else []
        except ValueError:
            sizes = [0]
        if sizes and (sizes[0] < 1 or len(sizes) < 2):
            raise UserError(f'sweep: {self.sweep!r} is no list of at least two numbers of robots')
        return tuple(sizes)
