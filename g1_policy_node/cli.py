"""The command line: `g1-policy`. Each command imports what it needs, when it runs."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from g1_policy_node.bringup import (
    Options,
    Table,
    choices,
    default_text,
    descriptions,
    kinds,
    read_options,
)
from g1_policy_node.training.options import TrainOptions
from g1_policy_node.types import UserError


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2 and the message alone."""
        self.exit(2, f'{self.prog}: {message}\n')


def build_parser(arguments: Sequence[str]) -> Parser:
    """Return the parser of every command there is, complete for the one in `arguments`."""
    parser = Parser('g1-policy', description='A walking policy on a Unitree G1.')
    commands = parser.add_subparsers(metavar='COMMAND', required=True)
    walk = commands.add_parser('walk', help='walk in a simulator', allow_abbrev=False)
    add_options(walk, Options)
    walk.set_defaults(run=_walk)
    train = commands.add_parser('train', help='train a policy', allow_abbrev=False)
    add_options(train, TrainOptions)
    train.set_defaults(run=_train)
    report = commands.add_parser('report', help="merge and show runs' evidence")
    report.add_argument(
        'runs',
        nargs='*',
        type=Path,
        metavar='RUN',
        help='a folder, or a trip of the black box (.npz); default: the newest',
    )
    report.add_argument('--claims', action='store_true', help='what the runs prove, and what not')
    report.set_defaults(run=_report)
    rehearse = commands.add_parser('rehearse', help="the real robot's processes, killed in turn")
    rehearse.add_argument('--policy', default='', help='bundle: a folder or a name')
    rehearse.add_argument('--seconds', type=float, default=5.0, help='walk before each kill')
    rehearse.add_argument('--kill', action='append', help='only this process; may be repeated')
    rehearse.add_argument('--run-dir', default='', help='default: a new one under runs/')
    rehearse.set_defaults(run=_rehearse)
    _add_evaluate(commands)
    doctor = commands.add_parser('doctor', help='is this machine, and the robot, fit to walk?')
    doctor.add_argument('--policy', default='g1_walk', help='bundle: a folder or a name')
    doctor.add_argument('--interface', default='', help='network interface to the robot')
    doctor.add_argument('--domain', type=int, default=0, help="the robot's DDS domain")
    doctor.add_argument('--json', action='store_true', help='print JSON')
    doctor.add_argument('--run-dir', default='', help="a run's folder: doctor.json goes there")
    doctor.set_defaults(run=_doctor)
    _add_heavy(commands, arguments[:1])
    return parser


def _add_evaluate(commands: Any) -> None:
    evaluate = commands.add_parser('evaluate', help='measure policies in MuJoCo, side by side')
    evaluate.add_argument(
        'policies', nargs='*', metavar='BUNDLE', help='names or folders; default: g1_walk'
    )
    evaluate.add_argument('--bar', default='', help='judge by this bar of the plan')
    evaluate.add_argument('--plan', type=Path, help='default: config/evaluation.yaml')
    evaluate.add_argument('--quick', action='store_true', help='a few runs; judges nothing')
    evaluate.add_argument('--jobs', type=int, default=0, help='processes; default: one per core')
    evaluate.add_argument('--write', action='store_true', help="into the bundles' manifests too")
    evaluate.add_argument('--run-dir', default='', help='default: a new one under runs/')
    evaluate.set_defaults(run=_evaluate)


def _add_heavy(commands: Any, first: Sequence[str]) -> None:
    """Add the commands whose own parsers import much; whole only for the one asked for."""
    if 'bundle' in first:
        from g1_policy_node.tools.bundle_cli import add_parser as add_bundle

        add_bundle(commands)
    else:
        commands.add_parser('bundle', help='look at, verify, make and compare policy bundles')
    if 'tape' in first:
        from g1_policy_node.tools.tape.cli import add_parser as add_tape

        add_tape(commands)
    else:
        commands.add_parser('tape', help='record, replay and compare tapes')


def add_options(parser: argparse.ArgumentParser, table: Table) -> None:
    """Add the options of a table, each as text; `read_options` reads them."""
    types, meaning = kinds(table), descriptions(table)
    for item in fields(table):
        switch = types[item.name] is bool
        allowed = 'true|false' if switch else '|'.join(choices(item.name, table))
        default = default_text(item.name, table) or 'empty'
        parser.add_argument(
            f'--{item.name.replace("_", "-")}',
            dest=item.name,
            nargs='?' if switch else None,
            const='true' if switch else None,
            default=argparse.SUPPRESS,
            metavar=allowed or item.name.upper(),
            help=f'{meaning[item.name]} (default: {default})',
        )


def main() -> None:
    """Run the command of this process's arguments and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command; 2 and one line on stderr for a user's mistake or a file that fails."""
    try:
        parsed = build_parser(arguments).parse_args(arguments)
        code: int = parsed.run(parsed)
        return code
    except (UserError, OSError) as error:  # OSError: a file that was named, or its disk
        print(f'g1-policy: {error}', file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _walk(arguments: argparse.Namespace) -> int:
    from g1_policy_node.tools.walk import walk

    return walk(_read(arguments, Options))


def _train(arguments: argparse.Namespace) -> int:
    options = _read(arguments, TrainOptions)
    from g1_policy_node.training.train import train

    return train(options)


def _read(arguments: argparse.Namespace, table: Table) -> Any:
    names = kinds(table)
    return read_options({n: text for n, text in vars(arguments).items() if n in names}, table)


def _doctor(arguments: argparse.Namespace) -> int:
    from g1_policy_node.tools.doctor import doctor

    a = arguments
    return doctor(a.policy, a.interface, a.domain, a.json, a.run_dir)


def _evaluate(arguments: argparse.Namespace) -> int:
    try:
        import mujoco  # noqa: F401
    except ImportError:
        raise UserError('evaluate needs MuJoCo: pip install mujoco') from None
    from g1_policy_node.tools.evaluation.evaluate import Request, evaluate

    a = arguments
    policies = tuple(a.policies) or ('g1_walk',)
    return evaluate(Request(policies, a.plan, a.bar, a.quick, a.jobs, a.write, a.run_dir))


def _rehearse(arguments: argparse.Namespace) -> int:
    from g1_policy_node.tools.rehearse import VICTIMS, rehearse

    a = arguments
    return rehearse(a.policy, a.seconds, a.kill or VICTIMS, a.run_dir)


def _report(arguments: argparse.Namespace) -> int:
    if arguments.claims:
        from rich.console import Console

        from g1_policy_node.tools.claims_table import show_claims

        return show_claims(arguments.runs, Console())
    from g1_policy_node.tools.report import report

    return report(arguments)


if __name__ == '__main__':
    main()
