"""Functions of torch that `vmap` cannot split, or in which layers hide, written with functions that it can.

Each takes the arguments of torch's own and gives the same result, or NotImplemented where it has no answer.
"""

from math import sqrt
from typing import Any

import torch
from torch.nn import functional

__all__ = ["PRODUCT", "SUBSTITUTES", "attention_of_all"]

PRODUCT = (
    "model and loss must not use prod or cumprod: backwards torch looks whether any example has a zero, and one "
    "example decides for the others. Multiply step by step, or take exp of a sum of logs."
)


def recurrent(kind: str) -> Any:
    """An LSTM or a GRU, step by step, so that its layers are linear ones."""

    def run(
        input: Any, hx: Any, weights: Any, bias: bool, layers: int, dropout: float, training: bool, both: bool,
        batch_first: bool = False,
    ) -> Any:  # fmt: skip
        if not (isinstance(bias, bool) and isinstance(input, torch.Tensor)):
            return NotImplemented  # packed sequences, whose steps have other numbers of examples
        ways, parts = 2 if both else 1, 4 if bias else 2
        if len(weights) != layers * ways * parts or input.ndim != 3:
            return NotImplemented
        x = input.transpose(0, 1) if batch_first else input
        states = [h.unbind(0) for h in (hx if kind == "lstm" else (hx,))]
        last: list[Any] = []
        for layer in range(layers):
            found = []
            for way in range(ways):
                k = layer * ways + way
                w = [*weights[k * parts : (k + 1) * parts], None, None][:4]
                y, state = _run(kind, x.flip(0) if way else x, [s[k] for s in states], w)
                found.append(y.flip(0) if way else y)
                last.append(state)
            x = torch.cat(found, -1) if both else found[0]
            if dropout and training and layer < layers - 1:
                x = functional.dropout(x, dropout, True)
        ends = [torch.stack(some) for some in zip(*last, strict=True)]
        return (x.transpose(0, 1) if batch_first else x, *ends)

    return run


def _run(kind: str, x: Any, state: list[Any], w: list[Any]) -> tuple[Any, list[Any]]:
    """One layer in one direction: all outputs, and the last state."""
    before, outputs = functional.linear(x, w[0], w[2]), []
    for step in before.unbind(0):
        gates = functional.linear(state[0], w[1], w[3])
        if kind == "lstm":
            i, f, g, o = (step + gates).chunk(4, -1)
            cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
            state = [o.sigmoid() * cell.tanh(), cell]
        elif kind == "gru":
            (r, z, n), (hr, hz, hn) = step.chunk(3, -1), gates.chunk(3, -1)
            z = (z + hz).sigmoid()
            n = (n + (r + hr).sigmoid() * hn).tanh()
            state = [n + z * (state[0] - n)]
        else:
            state = [(step + gates).tanh() if kind == "rnn_tanh" else (step + gates).relu()]
        outputs.append(state[0])
    return torch.stack(outputs), state


def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Sums or means of rows of a table."""
    if input.ndim != 2 or offsets is not None or mode == "max" or max_norm is not None or scale_grad_by_freq or sparse:
        return NotImplemented
    rows = functional.embedding(input, weight, padding_idx)
    kept = torch.ones_like(input, dtype=rows.dtype)
    if padding_idx is not None:
        kept = (input != padding_idx % weight.shape[0]).to(rows.dtype)
    share = kept if per_sample_weights is None else kept * per_sample_weights
    total = (rows * share.unsqueeze(-1)).sum(1)
    return total if mode == "sum" else total / kept.sum(1, keepdim=True).clamp(min=1)


def weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """v with the norm g along all dimensions but one."""
    others = [d for d in range(v.dim()) if d != dim % v.dim() or dim == -1]
    return v * (g / torch.linalg.vector_norm(v * 1, dim=others, keepdim=True))


def multi_head_attention(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any, in_proj_bias: Any,
    bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float, out_proj_weight: Any, out_proj_bias: Any,
    training: bool = True, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Any:  # fmt: skip
    """Attention with its projections as linear layers."""
    odd = add_zero_attn or any(x is not None for x in (bias_k, bias_v, static_k, static_v))
    if odd or query.ndim != 3:
        return NotImplemented
    if use_separate_proj_weight:
        parts = [None] * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        slices = zip((query, key, value), (q_proj_weight, k_proj_weight, v_proj_weight), parts, strict=True)
        q, k, v = (functional.linear(x, w, b) for x, w, b in slices)
    elif query is key and key is value:
        q, k, v = functional.linear(query, in_proj_weight, in_proj_bias).chunk(3, -1)
    else:
        parts = [None] * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        slices = zip((query, key, value), in_proj_weight.chunk(3), parts, strict=True)
        q, k, v = (functional.linear(x, w, b) for x, w, b in slices)
    length, examples, width = query.shape
    q, k, v = (x.reshape(len(x), examples, num_heads, -1).permute(1, 2, 0, 3) for x in (q, k, v))
    mask = _mask(attn_mask, key_padding_mask, examples, num_heads, q.dtype)
    dropout_p = dropout_p if training else 0.0
    weights: Any = None
    if need_weights:
        scores = q @ k.transpose(-1, -2) / sqrt(q.shape[-1])
        weights = (scores if mask is None else scores + mask).softmax(-1)
        seen = functional.dropout(weights, dropout_p) @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        causal = is_causal and mask is None
        seen = functional.scaled_dot_product_attention(q, k, v, mask, dropout_p, causal)
    seen = seen.permute(2, 0, 1, 3).reshape(length, examples, width)
    return functional.linear(seen, out_proj_weight, out_proj_bias), weights


def _mask(of_pairs: Any, of_keys: Any, examples: int, heads: int, dtype: Any) -> Any:
    """Both masks as one that is added to the scores."""

    def added(mask: Any) -> Any:
        return (
            torch.zeros_like(mask, dtype=dtype).masked_fill(mask, float("-inf")) if mask.dtype == torch.bool else mask
        )

    pairs = None if of_pairs is None else added(of_pairs)
    if pairs is not None and pairs.ndim == 3:
        pairs = pairs.reshape(examples, heads, *pairs.shape[1:])
    if of_keys is None:
        return pairs
    keys = added(of_keys).reshape(examples, 1, 1, -1)
    return keys if pairs is None else pairs + keys


def attention_of_all(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, *,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Fused attention for a whole micro-batch of single examples: (examples, 1, heads, tokens, width)."""
    mask = attn_mask
    if mask is not None:
        mask = mask.flatten(0, 1) if mask.ndim == 5 else mask.unsqueeze(1) if mask.ndim == 3 else mask
    q, k, v = (x.flatten(0, 1) for x in (query, key, value))
    seen = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
    )
    return seen.unflatten(0, (len(query), 1))


def weighted(log_softmax: bool) -> Any:
    """A mean loss with class weights: for one example torch divides the weight by itself, and it would vanish.

    Here it is the weighted sum over the number of targets, which does not depend on the weights.
    """

    def run(
        input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
        reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
    ) -> Any:  # fmt: skip
        if size_average is not None or reduce is not None:  # how torch reads these older arguments
            reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        if weight is None or reduction != "mean" or target.is_floating_point():
            return NotImplemented
        more: Any = {"label_smoothing": label_smoothing} if log_softmax else {}
        loss = functional.cross_entropy if log_softmax else functional.nll_loss
        total = loss(input, target, weight, ignore_index=ignore_index, reduction="sum", **more)
        return total / (target != ignore_index).sum()

    return run


def product(input: Any, *args: Any, **kwargs: Any) -> Any:
    """A product of numbers with a gradient is refused: torch looks whether any of all examples has a zero."""
    if not (isinstance(input, torch.Tensor) and input.is_floating_point() and torch.is_grad_enabled()):
        return NotImplemented
    raise ValueError(PRODUCT)


SUBSTITUTES = {
    "cross_entropy": weighted(log_softmax=True),
    "nll_loss": weighted(log_softmax=False),
    "prod": product,
    "cumprod": product,
    "embedding_bag": embedding_bag,
    "_weight_norm": weight_norm,
    "multi_head_attention_forward": multi_head_attention,
} | {kind: recurrent(kind) for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu")}
"""By the name of torch's function."""
