"""State outside the example: what a model or a loss keeps from pass to pass, or reads from the whole micro-batch.

A pass is one example as far as its code can tell. What could still carry one example's values to another is refused
here by name, before the first draw: docs/design/step.md, claim 14.
"""

import gc
import inspect
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from math import nan
from typing import Any

import torch
from torch import nn

from psidp.bridges.torch.step.examples import Examples, mapped
from psidp.bridges.torch.step.lowering import inside
from psidp.bridges.torch.step.rehearsal import made_up
from psidp.bridges.torch.step.surroundings import NUMBERS, PLAIN, Surroundings

__all__ = [
    "MANY",
    "Unchanged",
    "held_by",
    "modules_of",
    "nothing_escapes",
    "refuse_changes",
    "refuse_company",
    "refuse_scripts",
]

MANY = 3
"""Made-up examples that keep each other company, where a micro-batch has room for them."""

CLOSE = {"cpu": 1e-4, "cuda": 1e-2}
"""How far a gradient may move, over its norm: some kernels give other last bits each time, which a ReLU may amplify."""

INTERNAL = frozenset(vars(nn.Module()))
"""Attributes of every module, which are torch's own business."""

CONTAINERS = (list, dict, set, deque)

Passed = Callable[..., Iterable[torch.Tensor]]
"""Gradients of made-up examples with a seed: a tensor for each parameter, formed as it is asked for."""

Namespace = tuple[str, dict[str, Any]]
"""Whose names these are, and what they stand for."""

KEPT = (
    "{name} of {owner} must stay the same from pass to pass: it would carry values of one example to others, or tell "
    "how many examples were drawn. Put that part into eval mode, if it has one, or leave it out of model and loss."
)
SCRIPT = (
    "model and loss must not be scripts of torch.jit, got {owner}: what a script keeps in its attributes is out of "
    "sight. Use the module that it was made from."
)
ESCAPED = (
    "model and loss must keep no tensor of an example, but after the pass there still is {what}. Take it out: forward "
    "and loss may only return tensors."
)
REPEATED = (
    "model and loss must give one example the same gradient in every pass with the same random seeds. Something is "
    "kept from pass to pass (a counter, a global, a cache), or random numbers come from a source that seeds of torch, "
    "NumPy and Python's random do not reach. Change numbers of a schedule between steps, and draw with torch.rand."
)
COUNTED = (
    "{name} of {owner} must stay the same from pass to pass where a step has as many places as examples are drawn "
    "(slots=0, or micro_batch=1): it would tell how many those are. Leave both at their defaults."
)
COMPANY = (
    "model and loss must keep the examples of a micro-batch apart, but the gradient of one changes with the values of "
    "the others: look for an autograd.Function or operator with its own vmap rule. Let torch make the rule "
    "(generate_vmap_rule = True), or take micro_batch=1."
)


class Unchanged:
    """Names and what they stand for now, to refuse a pass that changes one of them."""

    def __init__(self, namespaces: Iterable[Namespace]) -> None:
        self._before = [
            (owner, held, {name: (value, _mark(value)) for name, value in held.items() if name not in INTERNAL})
            for owner, held in namespaces
        ]

    def check(self, counts: bool) -> None:
        """Refuse where a tensor, a number or the length of a container is another one; numbers not, if these count."""
        for owner, held, before in self._before:
            for name, value in held.items():
                old = before.get(name, (None, None))
                counted = counts and isinstance(value, NUMBERS) and isinstance(old[0], NUMBERS)
                if name not in INTERNAL and not (counted or _same(old, value)):
                    raise ValueError(KEPT.format(name=name, owner=owner))


def modules_of(loss: Any) -> list[nn.Module]:
    """All modules that a loss consists of or names."""
    named = [part for part in _parts([loss]) if isinstance(part, nn.Module)]
    return list(dict.fromkeys(module for root in named for module in root.modules()))


def held_by(modules: list[nn.Module], loss: Any) -> Iterator[Namespace]:
    """Attributes, parameters and buffers of modules, and the attributes of a loss that is another object."""
    for module in modules:
        owner = type(module).__name__
        yield from ((owner, held) for held in (vars(module), module._parameters, module._buffers))
    if not isinstance(loss, nn.Module) and hasattr(loss, "__dict__"):
        yield type(loss).__name__, vars(loss)


def refuse_changes(around: Surroundings, slots: int) -> bool:
    """Refuse changes around model and loss, but for numbers, which may count passes; whether there are such."""
    counts = False
    for name, owner, number in around.changed():
        if not number:
            raise ValueError(KEPT.format(name=name, owner=owner))
        if not slots:
            raise ValueError(COUNTED.format(name=name, owner=owner))
        counts = True
    return counts


def refuse_scripts(modules: list[nn.Module], loss: Any) -> None:
    """Refuse scripts among modules and loss, since nobody can read what they keep."""
    script = Surroundings([loss, *modules]).find(torch.jit.ScriptModule)
    if script is not None:
        raise ValueError(SCRIPT.format(owner=type(script).__name__))


def _parts(roots: list[Any]) -> list[Any]:
    """These objects, what they are made of, and the functions that they call, but for those of torch."""
    found: dict[int, Any] = {}
    left = list(roots)
    while left:
        part = left.pop()
        if id(part) in found:
            continue
        found[id(part)] = part
        if isinstance(part, partial):
            left += [part.func, *part.args, *part.keywords.values()]
        elif inspect.ismethod(part):
            left += [part.__self__, part.__func__]
        elif inspect.isfunction(part):
            left += [] if _from_torch(part) else filter(_leads_on, _outside(part).values())
        elif inspect.isclass(part):
            left += filter(inspect.isfunction, vars(part).values())
        elif not _from_torch(type(part)):
            left.append(type(part))
    return list(found.values())


def _leads_on(value: Any) -> bool:
    """Whether a value may be called by a function that names it, and keep something."""
    return inspect.isfunction(value) or isinstance(value, nn.Module | partial)


def _outside(function: Any) -> dict[str, Any]:
    """Names of a function that are not its own, and its default arguments."""
    found = inspect.getclosurevars(function)
    defaults = {f"default argument {k}": value for k, value in enumerate(function.__defaults__ or ())}
    return {**found.globals, **found.nonlocals, **defaults}


def _from_torch(thing: Any) -> bool:
    return (thing.__module__ or "").partition(".")[0] == "torch"


def _mark(value: Any) -> int | None:
    """What changes with a value that stays the same object."""
    if isinstance(value, torch.Tensor):
        return None if value.is_inference() else value._version
    return len(value) if isinstance(value, CONTAINERS) else None


def _same(before: tuple[Any, int | None], value: Any) -> bool:
    """Whether a value is the one of before; of two objects that are neither tensor, number nor container, none asks."""
    old, mark = before
    if value is old:
        return _mark(value) == mark
    if isinstance(value, (torch.Tensor, *CONTAINERS)):
        return False
    return not isinstance(value, PLAIN) or bool(value == old)


@contextmanager
def nothing_escapes(namespaces: Callable[[], Iterable[Namespace]]) -> Iterator[None]:
    """Refuse tensors of examples that are alive after the passes inside, wherever they are kept."""
    enabled = gc.isenabled()
    gc.collect(0)  # so that the young generation has what is made inside, and nothing else
    gc.disable()
    before = _collections()
    try:
        yield
        made = gc.get_objects(generation=0 if _collections() == before else None)  # a collection made all of them old
        alive = [weakref.ref(o) for o in made if issubclass(type(o), torch.Tensor) and inside(o)]
        del made
    finally:
        if enabled:
            gc.enable()
    if alive:
        gc.collect()  # those that only a cycle holds
        kept = [tensor for tensor in (ref() for ref in alive) if tensor is not None]
        if kept:
            raise ValueError(ESCAPED.format(what=_place(kept[0], namespaces())))


def _collections() -> int:
    """How often garbage was collected so far."""
    return sum(generation["collections"] for generation in gc.get_stats())


def _place(tensor: torch.Tensor, namespaces: Iterable[Namespace]) -> str:
    """Where a tensor is kept, as far as that is known."""
    for owner, held in namespaces:
        for name, value in held.items():
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, CONTAINERS) else [value]
            if any(item is tensor for item in inner):
                return f"{name} of {owner}"
    return f"one of shape {tuple(tensor.shape)}, kept outside of both"


def refuse_company(passed: Passed, inputs: Examples, targets: Examples, many: int) -> None:
    """Refuse where the gradient of a made-up example changes from pass to pass, or with the values of the others.

    All passes have one seed. The first example stays, the others become NaN, or ones. On a GPU only floats change, and
    never to NaN: a kernel that checks its input, or an index, ends the process there.
    """
    seed = os.urandom(24)
    some = made_up(inputs, many), made_up(targets, many)
    first = _prints(passed(*some, seed))
    _refuse_unlike(first, _prints(passed(*some, seed)), REPEATED)
    for floats, whole in ((1.0, 0),) if first.is_cuda else ((nan, 0), (1.0, 1)):
        try:
            there = _prints(passed(*(_others(part, floats, whole) for part in some), seed))
        except Exception:  # a value that no record may have
            continue
        _refuse_unlike(first[:, :1], there[:, :1], COMPANY)
    _refuse_unlike(first, _prints(passed(*some, seed)), REPEATED)


def _others(examples: Examples, floats: float, whole: int) -> Examples:
    """The same with other values in all examples but the first."""

    def one(tensor: torch.Tensor) -> torch.Tensor:
        changed = torch.full_like(tensor, floats if tensor.is_floating_point() else whole)
        changed[:1] = tensor[:1]
        return changed

    return mapped(one, examples)


def _prints(gradients: Iterable[torch.Tensor]) -> torch.Tensor:
    """For each parameter and example the sum of the gradient over the square root of its length, and its norm."""
    return torch.stack(
        [
            torch.stack(
                [
                    row.sum(1, dtype=torch.float64) / row.shape[1] ** 0.5,
                    torch.linalg.vector_norm(row, dim=1, dtype=torch.float64),
                ],
                1,
            )
            for row in (g.reshape(len(g), -1) for g in gradients if g.numel())
        ]
    )


def _refuse_unlike(first: torch.Tensor, again: torch.Tensor, sentence: str) -> None:
    """Refuse gradients that are not the same, but for examples that have none that is finite."""
    norm = first[..., 1].square().sum(0).sqrt()
    same = (first - again).abs() <= CLOSE[first.device.type] * norm[:, None]
    if not bool((same.all(2).all(0) | ~norm.isfinite()).all()):
        raise ValueError(sentence)
