"""Plain options without pydantic: words and numbers are converted by Python itself, so that a command starts at once.

Typer 0.29 and newer load pydantic to convert any option, which takes longer than the command. What is not plain, or not
right, goes to Typer as before, so that every refusal is Typer's own.
"""

from typing import Any, get_args, get_origin

__all__ = ["convert_plainly"]


class PlainValue:
    """Converts the values of one option; stands in for the converter that Typer makes when it is first asked."""

    def __init__(self, kind: type, several: bool, descriptor: Any) -> None:
        self.kind, self.several, self.descriptor = kind, several, descriptor

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as Typer would return it."""
        try:
            return self._converted(value)
        except (TypeError, ValueError):
            from typer._coercion import build_runtime_param  # loads pydantic

            return build_runtime_param(self.descriptor).coerce(value, param=param, ctx=ctx)

    def _converted(self, value: Any) -> Any:
        if self.several:
            return [_one(self.kind, item) for item in value] if value is not None else ()
        return None if value is None else _one(self.kind, value)


def _one(kind: type, value: Any) -> Any:
    """One word as a str, float or int; anything else raises."""
    if type(value) is kind:
        return value
    if type(value) is str and kind in (float, int) and value.isascii():
        return kind(value)
    raise TypeError(value)


def convert_plainly(command: Any, ctx: Any) -> Any:
    """The same command; its options that hold words or numbers no longer load pydantic. Older Typers need nothing."""
    for parameter in command.get_params(ctx):
        descriptor = getattr(parameter, "type_descriptor", None)
        if getattr(parameter, "_runtime_param", True) is None and (plain := _plain(descriptor)):
            parameter._runtime_param = PlainValue(*plain, descriptor)
    for child in getattr(command, "commands", {}).values():
        convert_plainly(child, ctx)
    return command


def _plain(descriptor: Any) -> tuple[type, bool] | None:
    """What the option holds, and whether it may be repeated; None unless Typer would only convert it."""
    kind, several, info = descriptor.annotation, False, descriptor.parameter_info
    if get_origin(kind) is list:
        (kind,), several = get_args(kind), True
    bounded = any(getattr(info, name, None) is not None for name in ("min", "max", "parser", "click_type", "path_type"))
    return (kind, several) if kind in (str, float, int, bool) and not bounded else None
