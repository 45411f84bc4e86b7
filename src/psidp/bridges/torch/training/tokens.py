"""Tokens: records of language models in one public length, and their loss."""

from collections.abc import Mapping
from typing import Any

import torch

from psidp.symbols import whole

__all__ = ["PadTo", "next_token_loss"]

IGNORED = -100
"""The label of a token that has no loss, as torch's cross_entropy and Hugging Face's models have it."""


class PadTo:
    """A collate for dict records of tokens: every sequence is cut or padded to one public length.

    Never to the longest of a draw: then one record would change the shape, and with it the gradients, of the others.
    Where a record has no `attention_mask`, it is made; where it has no target, the target is `input_ids`, as language
    models want it.

    Args:
        length: tokens of every example, a public number.
        target: the key of the target; a target that is one number, such as a class, stays one.
        fill: what to pad with, by key; 0 unless told, and -100, which has no loss, for the target.

    Examples:
        >>> inputs, target = PadTo(4)({"input_ids": [5, 6, 7]})
        >>> inputs["input_ids"], inputs["attention_mask"], target
        (tensor([5, 6, 7, 0]), tensor([1, 1, 1, 0]), tensor([   5,    6,    7, -100]))
    """

    def __init__(self, length: int, *, target: str = "labels", fill: Mapping[str, int] | None = None) -> None:
        self.length, self.target = whole("length", length), target
        self.fill = {target: IGNORED} | dict(fill or {})

    def __repr__(self) -> str:
        return f"PadTo({self.length}, target={self.target!r}, fill={self.fill})"

    def __call__(self, record: Mapping[str, Any]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Inputs and target of one record."""
        if not (isinstance(record, Mapping) and "input_ids" in record):
            raise TypeError("data must give dicts with 'input_ids' for PadTo to pad. Give a collate of your own.")
        values = {key: torch.as_tensor(value) for key, value in record.items()}
        values.setdefault("attention_mask", torch.ones_like(values["input_ids"]))
        values.setdefault(self.target, values["input_ids"])
        padded = {key: self._padded(key, value) for key, value in values.items()}
        return padded, padded.pop(self.target)

    def _padded(self, key: str, value: torch.Tensor) -> torch.Tensor:
        if value.ndim == 0:
            return value
        missing = self.length - min(self.length, value.shape[0])
        rest = value.new_full((missing, *value.shape[1:]), self.fill.get(key, 0))
        return torch.cat([value[: self.length], rest])


def next_token_loss(output: Any, target: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy of the next token over the tokens of one example that have a label; 0 where none has.

    Args:
        output: logits (1, tokens, vocabulary), or what a Hugging Face model gives, with `logits`.
        target: labels (1, tokens), those of tokens without a loss -100.

    Examples:
        >>> logits, labels = torch.zeros(1, 3, 10), torch.tensor([[1, 2, -100]])
        >>> round(next_token_loss(logits, labels).item(), 4)
        2.3026
    """
    logits = getattr(output, "logits", output)
    following = target[:, 1:]
    total = torch.nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1).float(), following.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    return total / (following != IGNORED).sum().clamp(min=1)
