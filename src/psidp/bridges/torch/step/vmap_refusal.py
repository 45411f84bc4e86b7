"""What `vmap` says of a model that it cannot split into examples, as one sentence with the module and what to do."""

from types import TracebackType

from torch import nn

__all__ = ["SAVED", "refusal"]

SAVED = "saved-tensor hooks are switched off in a private step"
"""What torch is to say of them."""

SENTENCES = {
    SAVED: "{where} uses saved-tensor hooks, as compression, offloading and checkpointing of activations do: they see "
    "the whole micro-batch, and one example could change the gradients of the others. Take them out, also around the "
    "step; a smaller micro_batch needs less memory.",
    "setup_context": "{where} uses an autograd.Function that torch cannot split into examples. Give it a "
    "setup_context, and generate_vmap_rule = True.",
    "Inference tensors": "a private step must not run in torch.inference_mode(), which records no gradient. Leave it "
    "out.",
    "cannot register a hook on a tensor": "{where} registers a hook on a tensor, which would see the whole "
    "micro-batch. Take it out, and compute what it does in forward.",
    "can't retain_grad": "{where} asks a tensor to retain its gradient, which would be that of the whole micro-batch. "
    "Take it out.",
    "does not require grad and does not have a grad_fn": "{where} asks autograd for a gradient of its own, which would "
    "be that of the whole micro-batch. Use torch.func.grad.",
    "randomness": "model and loss must draw random numbers for each example, into new tensors. Write "
    "torch.rand_like(x) for torch.empty(...).uniform_(), and nn.Dropout for masks of your own.",
    "out= or view ops": "model must not change parameters and buffers as it runs, as {where} does: they would tell how "
    "many examples were drawn. Put that part into eval mode, if it has one, or leave it out.",
    "data-dependent control flow": "{where} must not decide by the values of its input: each example would decide for "
    "all of its batch. Compute both and choose with torch.where; of a mask, give the model one for each example.",
    ".item()": "{where} must not read values out of its input, with .item() or the like: each example would decide for "
    "all of its batch. Keep them as tensors.",
    "Cannot access data pointer": "{where} must not read values out of its input, with .numpy(), .tolist() or the "
    "like: each example would decide for all of its batch. Keep them as tensors.",
    "Batching rule not implemented": "{where} uses a function of torch that cannot tell the examples of a batch apart: "
    "{what}. Write it with others, or freeze that part and run it beforehand.",
    "dynamic shape": "{where} makes tensors whose size depends on the values of its input, so that examples cannot be "
    "computed side by side: {what}. Use torch.where, or take micro_batch=1.",
    "heckpointing": "{where} uses gradient checkpointing, which runs a part again where examples are no longer kept "
    "apart. Switch it off and take a smaller micro_batch.",
}
"""By a piece of torch's own message."""


def refusal(error: RuntimeError, model: nn.Module) -> ValueError | None:
    """The sentence for an error of torch's, if it is one of these."""
    said = str(error)
    for piece, sentence in SENTENCES.items():
        if piece in said:
            return ValueError(sentence.format(where=_where(error.__traceback__, model), what=said.split("\n")[0][:200]))
    return None


def _where(trace: TracebackType | None, model: nn.Module) -> str:
    """The innermost module of the model that was running."""
    names = {id(module): name for name, module in model.named_modules()}
    found = "model or loss"
    while trace is not None:
        running = trace.tb_frame.f_locals.get("self")
        if isinstance(running, nn.Module) and id(running) in names:
            found = f"{names[id(running)] or 'model'} ({type(running).__name__})"
        trace = trace.tb_next
    return found
