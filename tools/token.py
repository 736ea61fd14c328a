"""Makes, lists, rotates and revokes bearer tokens. `make token` does it for the local cloud, or for a deployed stack.

It works on the table, with the AWS credentials of whoever runs it; no token may do what it does. A token is printed
once, alone on the standard output; the table knows its hash.
"""

import argparse
import sys
from collections.abc import Callable
from datetime import timedelta

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import TypeAdapter, ValidationError

from knowledge import bootstrap
from knowledge.domain.access import Role, Token
from knowledge.errors import ConfigError, KnowledgeError
from knowledge.services.tokens import LIFETIMES, NewToken, Tokens
from tools.local_cloud import stack
from tools.local_cloud.places import Problem

NEVER = timedelta.max
# Source: template.yaml, `ReauthorizeEvery`.
_SOON = " within 30 seconds, for which the gateway may still know it"
_MEANT_FOR = {
    Role.READER: "an agent: it looks things up and searches, and can never decide",
    Role.WRITER: "an agent: it also uploads and proposes, and can never decide",
    Role.REVIEWER: "a person, never a program: it also decides what every agent reads",
    Role.ADMIN: "a person, never a program: it decides what every agent reads, and changes the settings",
}


def main() -> int:
    """Runs from the command line; returns the exit code."""
    options = _parser().parse_args()
    try:
        command: Callable[[Tokens, argparse.Namespace], None] = options.command
        command(bootstrap.tokens(options.table or stack.table_name()), options)
    except (KnowledgeError, ConfigError, Problem, ClientError, BotoCoreError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.token", description=__doc__)
    parser.add_argument("--table", help="output TableName of the stack (default: the local cloud's)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    create = commands.add_parser("create", help="make a token; a name has one, and is shown wherever an actor is")
    create.add_argument(
        "--role", type=Role, choices=list(Role), default=Role.READER, help="make: ROLE= (default: %(default)s)"
    )
    create.add_argument(
        "--expires",
        type=_lifetime,
        metavar="90d",
        help="make: EXPIRES=; 90d, an ISO duration such as P1Y or PT12H, or never; at most ten years "
        f"(default: {', '.join(f'{role} {lifetime.days}d' for role, lifetime in LIFETIMES.items())})",
    )
    create.set_defaults(command=_create)
    listing = commands.add_parser("list", help="show every token: all but the token itself")
    listing.set_defaults(command=_list)
    rotate = commands.add_parser("rotate", help="make a new token for a name; the old one is good for a while yet")
    rotate.add_argument(
        "--grace", type=int, default=24, metavar="HOURS", help="make: GRACE=; 0 ends it at once (default: 24)"
    )
    rotate.set_defaults(command=_rotate)
    revoke = commands.add_parser("revoke", help="no token of that name is good any more")
    revoke.set_defaults(command=_revoke)
    for named in (create, rotate, revoke):
        named.add_argument("--name", required=True, help="who uses it (make: NAME=)")
    return parser


def _lifetime(text: str) -> timedelta:
    if text == "never":
        return NEVER
    try:
        return TypeAdapter(timedelta).validate_python(text)
    except ValidationError as error:
        raise argparse.ArgumentTypeError("90d, an ISO duration such as P1Y or PT12H, or never") from error


def _create(tokens: Tokens, options: argparse.Namespace) -> None:
    lifetime = LIFETIMES[options.role] if options.expires is None else options.expires
    _show(tokens.create(options.name, options.role, None if lifetime is NEVER else lifetime))


def _list(tokens: Tokens, _: argparse.Namespace) -> None:
    rows = [("NAME", "ROLE", "CREATED", "EXPIRES", "SHA-256", "STATE")]
    rows += [
        (
            token.name,
            token.role.value,
            f"{token.created_at:%Y-%m-%d}",
            _expiry(token),
            f"{token.token_hash[:8]}...",
            tokens.state(token),
        )
        for token in tokens.list()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _rotate(tokens: Tokens, options: argparse.Namespace) -> None:
    new = tokens.rotate(options.name, grace=timedelta(hours=options.grace))
    _show(new)
    before = new.token.replaced
    _tell(f"The one before is good until {before.until:%Y-%m-%d %H:%M} UTC." if before else f"The old one ends{_SOON}.")


def _revoke(tokens: Tokens, options: argparse.Namespace) -> None:
    token = tokens.revoke(options.name)
    _tell(f"Revoked: {token.name}, {token.role}. It ends{_SOON}.")


def _show(new: NewToken) -> None:
    print(new.secret, flush=True)
    token = new.token
    _tell(f"Shown this once. {token.name}, {token.role}, for {_MEANT_FOR[token.role]}. Expires: {_expiry(token)}.")


def _expiry(token: Token) -> str:
    return f"{token.expires_at:%Y-%m-%d}" if token.expires_at else "never"


def _tell(text: str) -> None:
    """Beside the output, so that `TOKEN=$(make token ...)` holds the token alone."""
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
