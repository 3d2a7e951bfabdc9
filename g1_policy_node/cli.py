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
    report.add_argument('runs', nargs='*', type=Path, metavar='RUN', help='default: the newest')
    report.set_defaults(run=_report)
    if 'bundle' in arguments[:1]:
        from g1_policy_node.tools.bundle_cli import add_parser

        add_parser(commands)
    else:
        commands.add_parser('bundle', help='look at, verify, make and compare policy bundles')
    return parser


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
    """Run a command; 2 and one line on stderr for a user's mistake."""
    try:
        parsed = build_parser(arguments).parse_args(arguments)
        code: int = parsed.run(parsed)
        return code
    except UserError as error:
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


def _report(arguments: argparse.Namespace) -> int:
    from g1_policy_node.tools.report import report

    return report(arguments)


if __name__ == '__main__':
    main()
