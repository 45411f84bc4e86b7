"""Options from values: a command's parameter whose type is an option group becomes one option for each of its parts.

A group is a frozen dataclass; a field annotated `Annotated[type, typer.Option(...)]` is an option with the field's
default. Groups whose options follow from something else (notions, kinds of measures) make their own parameters.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, Self, TypeVar, get_type_hints

__all__ = ["OptionGroup", "from_values", "option"]

Made = TypeVar("Made")


class OptionGroup:
    """Options that belong together; on the command line its fields, for a command one value."""

    __slots__ = ()

    @classmethod
    def parameters(cls) -> list[Parameter]:
        """The options, in the order of the help."""
        hints = get_type_hints(cls, include_extras=True)
        return [option(f.name, hints[f.name], _default(f)) for f in fields(cls)]  # type: ignore[arg-type]

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """The group from the values of its options."""
        return cls(**values)


def option(name: str, kind: Any, default: Any = None) -> Parameter:
    """One option; the type says how it is written and explained."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _default(field: Any) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return Parameter.empty if field.default is MISSING else field.default


def from_values(command: Callable[..., Made]) -> Callable[..., Made]:
    """The command with the options of its groups instead of them."""
    own = signature(command, eval_str=True).parameters
    groups = {name: p.annotation for name, p in own.items() if _is_group(p.annotation)}
    options = {name: group.parameters() for name, group in groups.items()}

    @wraps(command)
    def called(**values: Any) -> Made:
        made = {
            name: group.from_options({p.name: values.pop(p.name) for p in options[name]})
            for name, group in groups.items()
        }
        return command(**made, **values)

    shown = [
        parameter
        for name, p in own.items()
        for parameter in options.get(name, [p.replace(kind=Parameter.KEYWORD_ONLY)])
    ]
    called.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return called


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, OptionGroup)
