"""The door through which exact numbers go to the noise: scripted randomness, and a record of what passed.

All noise of both versions is drawn by five functions of psidp.noise. They are replaced before anything else of psidp
is imported. Each call gets bytes of its own, made from the question's name, the noise and the exact numbers, so that
the order in which a version draws does not matter; a list of numbers is put in order first, since engines return
private groups in any order.
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Door"]


class Door:
    """Scripted from now on, in this process."""

    def __init__(self) -> None:
        self._bytes, self._name = random.Random(0), ""
        self._calls: Counter[str] = Counter()
        self._exact: dict[str, list[int]] = {}
        os.urandom = lambda n: self._bytes.randbytes(n)
        from psidp.noise import gaussian

        for name in ("noisy_totals", "noisy_integers", "noisy_total", "noisy_integer"):
            setattr(gaussian, name, self._watched(name, getattr(gaussian, name)))
        from psidp.noise import normal_source, ratios

        ratios.noisy_ratios = self._watched("noisy_ratios", ratios.noisy_ratios)
        self._forget = normal_source.forget

    def begin(self, name: str) -> None:
        """A question begins."""
        self._bytes, self._name = random.Random(name), name
        self._calls.clear()
        self._exact.clear()

    @property
    def exact(self) -> dict[str, list[int]]:
        """The exact numbers of this question by the noise that they got, in order of size."""
        return {noise: sorted(numbers) for noise, numbers in sorted(self._exact.items())}

    def _watched(self, name: str, draw: Callable[..., Any]) -> Callable[..., Any]:
        def drawn(law: Any, numbers: Any, *more: Any) -> Any:
            flat = np.asarray(numbers, object).reshape(-1).tolist()
            scale = f" in steps of 2^{more[0]}" if more and name != "noisy_ratios" else ""
            noise = f"{name} of sigma {law.sigma!r}, grid {law.grid!r}{scale}"
            self._exact.setdefault(noise, []).extend(map(int, flat))
            call = f"{self._name}\n{noise}\n{sorted(flat)}"
            self._calls[call] += 1
            self._bytes = random.Random(f"{call}\n{self._calls[call]}")
            self._forget()
            if getattr(numbers, "ndim", 0) != 1 or name == "noisy_ratios":
                return draw(law, numbers, *more)
            order = np.argsort(numbers, kind="stable")
            found = draw(law, numbers[order], *more)
            return found[np.argsort(order)]

        return drawn
