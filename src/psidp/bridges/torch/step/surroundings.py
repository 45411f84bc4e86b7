"""Surroundings: everything that the code of a model or a loss can reach, to refuse a pass that changes any of it.

A number carries no example's values, which Python code cannot read, but it may count passes. docs/design/step.md,
claim 14.
"""

import functools
import hashlib
import itertools
import operator
import random
import sys
import types
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = ["NUMBERS", "PLAIN", "Surroundings"]

NUMBERS = (bool, int, float, complex, Decimal, Fraction, np.number, np.bool_)
PLAIN = (*NUMBERS, str, bytes, type(None))
MISSING = object()
"""In the place of what is not there."""

MOST = 20_000
"""Things that are followed at most: a loss may name a whole program."""

LONG = 10_000
"""Containers of more items count by their length: they are data sets."""

SMALL = 2**16
"""Entries up to which a tensor is compared byte by byte; a larger one by its sum."""

FOLLOWED = frozenset({"builtins", "collections", "contextvars", "queue", "threading", "types"})
"""Parts of the standard library whose objects keep what they are given."""

OPAQUE = frozenset(sys.stdlib_module_names) - FOLLOWED | {"torch", "psidp", "numpy"}
"""Packages whose objects and functions are not followed."""

REGISTERS = ("_parameters", "_buffers")
"""Where a module has tensors, which go by their own names."""

ROOM = frozenset({"__dict__", "__weakref__", "__doc__", "__module__"})


class Surroundings:
    """What these things consist of and name, now: objects, closures, globals, default arguments, iterators."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self._before: dict[int, tuple[str, str, Any, dict[Any, Any]]] = {}
        left = deque((_name(root), "", root) for root in roots)
        while left and len(self._before) < MOST:
            owner, place, thing = left.popleft()
            if isinstance(thing, PLAIN) or id(thing) in self._before:
                continue
            held = _contents(thing)
            if held is None:
                continue
            self._before[id(thing)] = (owner, place, thing, held)
            for name, value in held.items():
                own = _name(value)
                inside = place or ("" if name in REGISTERS else str(name))
                left.append((own, "", value) if own else (owner, inside, value))

    def changed(self) -> Iterator[tuple[str, str, bool]]:
        """What is no longer as it was, of what it is, and whether it was a number and still is one."""
        for owner, place, thing, before in self._before.values():
            now = _contents(thing) or {}
            for name in [*before, *(name for name in now if name not in before)]:
                old, new = before.get(name, MISSING), now.get(name, MISSING)
                if not _alike(old, new):
                    yield place or str(name), owner, isinstance(old, NUMBERS) and isinstance(new, NUMBERS)

    def find(self, kind: type) -> Any:
        """One thing of this type among them; None where there is none."""
        return next((thing for _, _, thing, _ in self._before.values() if isinstance(thing, kind)), None)


def _name(thing: Any) -> str:
    """What a thing is called in a refusal; empty for a container, which takes its owner's name."""
    if isinstance(thing, types.FunctionType | type):
        return thing.__qualname__
    return "" if isinstance(thing, PLAIN) or type(thing).__module__ == "builtins" else type(thing).__name__


def _alike(old: Any, new: Any, depth: int = 3) -> bool:
    """Whether two values are one, or are made alike; tensors are so only if they are one."""
    if old is new:
        return True
    if type(old) is not type(new) or isinstance(old, torch.Tensor):
        return False
    if isinstance(old, PLAIN):
        return bool(old == new) or (old != old and new != new)
    one, two = _contents(old), _contents(new)
    if one is None or two is None or not depth:
        return True
    return one.keys() == two.keys() and all(_alike(one[name], two[name], depth - 1) for name in one)


def _contents(thing: Any) -> dict[Any, Any] | None:
    """What a thing holds, by name; None where it is not followed."""
    if isinstance(thing, nn.Module):
        return {"class": type(thing), **vars(thing)}
    if isinstance(thing, torch.Tensor):
        return {"values": _print(thing), **getattr(thing, "__dict__", {})}
    for kind, read in READERS:
        if isinstance(thing, kind):
            found: dict[Any, Any] | None = read(thing)
            return found
    of = thing if isinstance(thing, type | types.FunctionType) else type(thing)
    if (getattr(of, "__module__", "") or "").partition(".")[0] in OPAQUE:
        return None
    if isinstance(thing, types.FunctionType):
        return _outside(thing)
    if isinstance(thing, type):
        return None if thing.__module__ == "builtins" else {k: v for k, v in vars(thing).items() if k not in ROOM}
    return _attributes(thing)


def _attributes(thing: Any) -> dict[Any, Any] | None:
    """The attributes of an object, in slots or not."""
    slots = [name for kind in type(thing).__mro__ for name in _names(getattr(kind, "__slots__", ()))]
    held = {name: getattr(thing, name) for name in slots if name not in ROOM and hasattr(thing, name)}
    if not (held or hasattr(thing, "__dict__")):
        return None
    return {"class": type(thing)} | held | dict(getattr(thing, "__dict__", {}))


def _names(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def _outside(function: types.FunctionType) -> dict[Any, Any]:
    """What a function refers to: closure, globals, attributes of modules, default arguments, its own attributes."""
    found: dict[Any, Any] = dict(vars(function))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # nothing there yet
            found[name] = None
    names = list(dict.fromkeys(_referred(function.__code__)))
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            if value.__name__.partition(".")[0] not in OPAQUE:
                found |= {f"{name}.{inner}": vars(value)[inner] for inner in names if inner in vars(value)}
        elif name in function.__globals__:
            found[name] = value
    defaults = {f"default argument {k}": value for k, value in enumerate(function.__defaults__ or ())}
    return found | defaults | (function.__kwdefaults__ or {})


def _referred(code: types.CodeType) -> Iterator[str]:
    """Names in a function's code, and in that of functions inside."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _referred(inner)


def _print(tensor: torch.Tensor) -> Any:
    """What changes with the values of a tensor, also where they are changed past its version counter."""
    try:
        version = 0 if tensor.is_inference() else tensor._version
        plain = tensor.detach()
        if plain.numel() > SMALL:
            return version, repr(float(plain.sum(dtype=torch.float64)))
        return version, hashlib.sha256(
            plain.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        ).digest()
    except (RuntimeError, NotImplementedError, TypeError):  # not dense, or of a type without sums
        return None


def _items(thing: Any) -> dict[Any, Any]:
    """The items of a container by their keys or places, without any code of its class."""
    kind = next(kind for kind in type(thing).__mro__ if kind in CONTAINERS)
    length = kind.__len__(thing)
    if length > LONG:
        return {"length": length}
    if kind is dict:
        return {key if isinstance(key, PLAIN) else id(key): value for key, value in dict.items(thing)}
    items = kind.__iter__(thing)
    return dict(enumerate(sorted(items, key=id) if kind in (set, frozenset) else items))


def _array(thing: "np.ndarray[Any, Any]") -> dict[Any, Any]:
    """The bytes of an array of NumPy."""
    small = thing.dtype != object and thing.nbytes <= 8 * SMALL
    return {"values": hashlib.sha256(thing.tobytes()).digest() if small else thing.shape}


def _iterator(thing: Any) -> dict[Any, Any] | None:
    """Where an iterator stands; one that does not tell is never where it was."""
    if isinstance(thing, itertools.count | itertools.repeat):
        return {"position": repr(thing)}
    return {"position": object()}


def _generator(thing: "types.GeneratorType[Any, Any, Any]") -> dict[Any, Any]:
    """Where a generator stands, and its names."""
    frame = thing.gi_frame
    return {"position": None} if frame is None else {"position": frame.f_lasti} | frame.f_locals


CONTAINERS = (dict, list, tuple, set, frozenset, deque)
EMPTY: tuple[Iterable[Any], ...] = ([], (), "", {}, {}.values(), {}.items(), set(), range(0), deque())
ITERATORS = tuple(type(iter(some)) for some in EMPTY)
LAZY = (map, filter, zip, enumerate, *(kind for kind in vars(itertools).values() if isinstance(kind, type)))

READERS: tuple[tuple[Any, Any], ...] = (
    (CONTAINERS, _items),
    (types.MethodType, lambda thing: {"self": thing.__self__, "function": thing.__func__}),
    (functools.partial, lambda thing: {"function": thing.func, "args": thing.args, "keywords": thing.keywords}),
    (functools._lru_cache_wrapper, lambda thing: {"kept": thing.cache_info()[1:], "function": thing.__wrapped__}),
    (property, lambda thing: {"getter": thing.fget}),
    (staticmethod | classmethod, lambda thing: {"function": thing.__func__}),
    (weakref.ref, lambda thing: {"target": thing()}),
    (types.CellType | types.ModuleType | types.BuiltinFunctionType, lambda _: None),
    (types.GeneratorType, _generator),
    (ITERATORS, lambda thing: {"left": operator.length_hint(thing)}),
    (LAZY, _iterator),
    (random.SystemRandom, lambda _: None),
    (random.Random, lambda thing: {"state": repr(thing.getstate())}),
    (np.random.Generator, lambda thing: {"state": repr(thing.bit_generator.state)}),
    (np.random.RandomState, lambda thing: {"state": repr(thing.get_state(legacy=False))}),
    (torch.Generator, lambda thing: {"state": thing.get_state().numpy().tobytes()}),
    (np.ndarray, _array),
)
"""How to read what is neither a module nor a tensor, by type: the first that fits."""
