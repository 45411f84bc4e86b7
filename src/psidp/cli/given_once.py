"""Given once: an option that takes one value is refused where it stands twice, on every command.

The parser would take the last one without a word: `--unit-column a --unit-column b` would be a promise to the b alone.
"""

from typing import Any

__all__ = ["given_once"]


def given_once(command: Any) -> Any:
    """The same command, and those below it; an option that may not be repeated is refused where it is."""
    make = command.make_parser

    def made(ctx: Any) -> Any:
        parser = make(ctx)
        parse = parser.parse_args

        def parsed(args: list[str]) -> Any:
            found = parse(args)
            _check(found[2])
            return found

        parser.parse_args = parsed
        return parser

    command.make_parser = made
    for child in getattr(command, "commands", {}).values():
        given_once(child)
    return command


def _check(order: list[Any]) -> None:
    """Refuse the first of the parameters, in the order in which they were given, that stands there twice."""
    seen: list[Any] = []
    for parameter in order:
        if parameter in seen and parameter.param_type_name == "option" and not parameter.multiple:
            raise ValueError(
                f"{parameter.opts[0]} must be given once, got it {order.count(parameter)} times. Leave out all but one."
            )
        seen.append(parameter)
