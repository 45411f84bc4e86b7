"""Plain options without pydantic: words and numbers are converted by Python itself, so that a command starts at once.

Typer 0.29 and newer load pydantic to convert any option, which takes longer than the command. What is not plain, or not
right, goes to Typer as before; a number that Typer refuses is refused in our own words, which repeat it.
"""

import re
from typing import Any, get_args, get_origin

__all__ = ["convert_plainly", "number"]

LONGEST = 40
"""Letters of a word that a refusal repeats."""
THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})+")
WHOLE = re.compile(r"[+-]?[0-9]{16,4000}")
DECIMAL = re.compile(r"[+-]?[0-9]*,[0-9]+")


class PlainValue:
    """Converts the values of one option; stands in for the converter that Typer makes when it is first asked."""

    def __init__(self, kind: type, several: bool, descriptor: Any) -> None:
        self.kind, self.several, self.descriptor = kind, several, descriptor

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as Typer would return it."""
        try:
            return self._converted(value)
        except (TypeError, ValueError):
            from typer import BadParameter
            from typer._coercion import build_runtime_param  # loads pydantic

            try:
                return build_runtime_param(self.descriptor).coerce(value, param=param, ctx=ctx)
            except BadParameter:
                if self.kind not in (float, int):
                    raise
            raise ValueError(self._refusal(value, param)) from None

    def _refusal(self, value: Any, param: Any) -> str:
        """What the option must be, what it was, and how to write it."""
        from psidp.symbols import SYMBOLS  # loads NumPy

        words = [value] if isinstance(value, str) else list(value)
        wrong = next((word for word in words if not self._reads(word)), words[0])
        name = param.opts[0] if param.param_type_name == "option" else (param.metavar or param.name).strip("[]")
        meaning = SYMBOLS[param.name].meaning if param.name in SYMBOLS else (param.help or "").partition(";")[0]
        wanted = "a number" if self.kind is float else "a whole number"
        shown = wrong if len(wrong) <= LONGEST else f"{wrong[:LONGEST]}..."
        return f"{name} ({meaning or wanted}) must be {wanted}, got {shown!r}. {_advice(self.kind, wrong)}"

    def _reads(self, word: str) -> bool:
        """Whether one word is a number of this kind."""
        try:
            self.kind(word)
        except ValueError:
            return False
        return True

    def _converted(self, value: Any) -> Any:
        if self.several:
            return [_one(self.kind, item) for item in value] if value is not None else ()
        return None if value is None else _one(self.kind, value)


def _advice(kind: type, word: str) -> str:
    """How to write the number that was probably meant."""
    if THOUSANDS.fullmatch(word):
        return f"Write {word.replace(',', '')}, without commas."
    if kind is float and DECIMAL.fullmatch(word):
        return f"Write {word.replace(',', '.')}, with a point."
    return "Write it in digits, with a point: 0.1." if kind is float else "Write it in digits alone, such as 20."


def _one(kind: type, value: Any) -> Any:
    """One word as a str, float or int; anything else raises."""
    if type(value) is kind:
        return value
    if type(value) is str and kind in (float, int) and value.isascii():
        return number(value) if kind is float else int(value)
    raise TypeError(value)


def number(word: str) -> float:
    """A word as a float; a whole number that is no float as the int that it is, for the call to round to its side.

    Examples:
        >>> number("0.5"), number("9007199254740992"), number("9007199254740993")
        (0.5, 9007199254740992.0, 9007199254740993)
    """
    nearest = float(word)
    return nearest if not WHOLE.fullmatch(word) or (exact := int(word)) == nearest else exact


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
