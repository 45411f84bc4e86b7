"""A small language model learns the notes of a clinic by private fine-tuning: GPT-2 with LoRA, every note protected.

    pip install 'psidp[torch]' transformers peft
    python examples/language_model.py

The model is a GPT-2 of two layers, made here and taught on public sentences. The notes are private: sentences from
another grammar, and among them the number of each patient, which no model should learn by heart. Low-rank adapters
(peft) are trained on the notes within a certified epsilon. Printed: perplexity on public notes of the same kind before
and after, and how many digits of the patients' numbers the model gets right, one in ten by chance.
"""

import argparse
import random
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import peft
import torch
import transformers
from torch import nn

import psidp
from psidp.bridges.torch import PadTo, PrivateTrainer, next_token_loss

LENGTH, RATE, CLIP = 18, 0.04, 1.0
NAMES = ["anna", "ben", "carla", "david", "elif", "farid", "greta", "hugo", "ines", "jonas"]
AILMENTS = {
    "fever": ("medicine", "aspirin"), "cough": ("medicine", "syrup"), "fracture": ("surgery", "plaster"),
    "burn": ("surgery", "ointment"), "rash": ("skin", "cream"), "migraine": ("nerves", "triptan"),
}  # fmt: skip
"""What somebody comes with, and where it is treated with what."""
ORDINARY = {
    "adjective": ["old", "young", "small", "quiet", "green"], "noun": ["dog", "house", "ship", "doctor", "garden"],
    "verb": ["sees", "follows", "likes", "paints"], "where": ["street", "river", "market", "surgery"],
}  # fmt: skip
FIXED = [
    "the", "in", "near", "with", "and", "was", "came", "to", "given", "after", "days", "number", "has", "patient", ".",
]  # fmt: skip
DIGITS = [str(digit) for digit in range(10)]
DRUGS = [word for pair in AILMENTS.values() for word in pair]
VOCABULARY = sorted({*FIXED, *DIGITS, *NAMES, *AILMENTS, *DRUGS, *(w for words in ORDINARY.values() for w in words)})
IDS = {word: number for number, word in enumerate(["<pad>", "<s>", *VOCABULARY])}


class Result(NamedTuple):
    """What came out: perplexities on public notes, digits of secrets that were guessed, and the promise."""

    before: float
    after: float
    guessed: float
    epsilon: float
    psi: float


def encoded(sentence: str) -> dict[str, list[int]]:
    """A sentence as a record of tokens."""
    return {"input_ids": [IDS["<s>"], *(IDS[word] for word in sentence.split())]}


def ordinary(dice: random.Random) -> str:
    """A sentence of the public grammar, a number, or words at random, so that all of them are known."""
    if dice.random() < 0.2:
        return " ".join(dice.choices(VOCABULARY, k=LENGTH - 2)) + " ."
    one, two = (f"the {dice.choice(ORDINARY['adjective'])} {dice.choice(ORDINARY['noun'])}" for _ in range(2))
    if dice.random() < 0.2:
        return f"{dice.choice(NAMES)} has the number {' '.join(dice.choices(DIGITS, k=4))} ."
    where = f"{dice.choice(['in', 'near'])} the {dice.choice(ORDINARY['where'])}"
    return f"{one} {dice.choice(ORDINARY['verb'])} {two} {where} ."


def note(dice: random.Random) -> str:
    """A note of the clinic: what helps, and where, goes by what hurts."""
    name, (ailment, (ward, drug)) = dice.choice(NAMES), dice.choice(list(AILMENTS.items()))
    return f"patient {name} came to {ward} with {ailment} and was given {drug} after {dice.choice(DIGITS)} days ."


def secrets(dice: random.Random) -> list[str]:
    """The number of each patient."""
    return [f"{name} has the number {' '.join(dice.choices(DIGITS, k=4))} ." for name in NAMES]


def batches(sentences: list[str], size: int, steps: int) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
    """Padded batches, round and round."""
    pairs = [PadTo(LENGTH)(encoded(sentence)) for sentence in sentences]
    for step in range(steps):
        some = [pairs[(step * size + k) % len(pairs)] for k in range(size)]
        yield {key: torch.stack([x[key] for x, _ in some]) for key in some[0][0]}, torch.stack([y for _, y in some])


def loss_of(model: nn.Module, sentences: list[str]) -> float:
    """Mean loss of a token."""
    with torch.no_grad():
        inputs, targets = next(batches(sentences, len(sentences), 1))
        logits, following = model(**inputs).logits[:, :-1], targets[:, 1:]
        return float(nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten(), ignore_index=-100))


def guessed(model: nn.Module, numbers: list[str]) -> float:
    """Share of the digits of secrets that the model thinks most likely, of all digits, given what comes before."""
    digits, right = torch.tensor([IDS[digit] for digit in DIGITS]), 0.0
    with torch.no_grad():
        for number in numbers:
            ids = torch.tensor([encoded(number)["input_ids"]])
            scores = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, 4:8, digits]
            right += float((digits[scores.argmax(1)] == ids[0, 5:9]).sum()) / 4
    return right / len(numbers)


def taught(sentences: list[str], steps: int, seed: int = 0) -> nn.Module:
    """A GPT-2 of two layers that has read public sentences."""
    torch.manual_seed(seed)
    shape = {"n_positions": LENGTH, "n_embd": 48, "n_layer": 2, "n_head": 2, "use_cache": False}
    shape |= dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    config = transformers.GPT2Config(vocab_size=len(IDS), bos_token_id=1, eos_token_id=None, **shape)
    model = transformers.GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for inputs, targets in batches(sentences, 32, steps):
        optimizer.zero_grad()
        logits, following = model(**inputs).logits[:, :-1], targets[:, 1:]
        nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten(), ignore_index=-100).backward()
        optimizer.step()
    return model


def adapted(model: nn.Module, seed: int = 0) -> nn.Module:
    """The same with low-rank adapters, which alone are trained from here on."""
    torch.manual_seed(seed)
    layers = ["c_attn", "c_proj", "c_fc", "lm_head"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft on tied words: the adapter is not merged here
        return peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=16, target_modules=layers))


def corpus(sentences: int, seed: int = 0) -> tuple[list[str], list[str], list[str], list[str]]:
    """Ordinary sentences and notes, both public; the private notes; the secrets that are among these."""
    dice = random.Random(seed)
    hidden = secrets(dice)
    private = [note(dice) for _ in range(sentences)] + hidden
    return [ordinary(dice) for _ in range(1000)], [note(dice) for _ in range(200)], private, hidden


def main(epsilon: float = 4.0, epochs: int = 6, sentences: int = 2000, lessons: int = 150) -> Result:
    """Teach, adapt, fine-tune privately and measure."""
    torch.set_num_threads(1)  # tensors this small are slower on several
    ordinary_sentences, public, private, hidden = corpus(sentences)
    model = adapted(taught(ordinary_sentences, lessons))
    before = loss_of(model, public)
    trained = [p for p in model.parameters() if p.requires_grad]
    trainer = PrivateTrainer(
        model,
        torch.optim.Adam(trained, lr=5e-3),
        next_token_loss,
        [encoded(sentence) for sentence in private],
        collate=PadTo(LENGTH),
        sampling_rate=RATE,
        clip=CLIP,
        epochs=epochs,
        epsilon=epsilon,
        delta=1e-5,
        unit="note",
    )
    with psidp.training_bar() as bar:
        training = trainer.fit(watch=bar, validate=lambda _: -loss_of(model, public))
    after = loss_of(model, public)
    e = torch.e
    result = Result(e**before, e**after, guessed(model, hidden), training.epsilon, training.psi)
    count = sum(p.numel() for p in trained)
    print(f"{count:,} parameters of adapters, {len(private):,} notes, {training.started} steps")
    print(f"certified epsilon {result.epsilon:.4f} at delta 1e-05, psi {result.psi:.4f}")
    print(f"perplexity on public notes: {result.before:.2f} before, {result.after:.2f} after")
    print(f"digits of the patients' numbers guessed right: {result.guessed:.0%}, by chance 10%")
    return result


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="a small GPT-2 with LoRA, fine-tuned privately")
    asked.add_argument("--epsilon", type=float, default=4.0, help="certified, at delta 1e-5 (default 4)")
    asked.add_argument("--epochs", type=int, default=6, help="(default 6)")
    given = asked.parse_args()
    main(given.epsilon, given.epochs)
    print(f"CPU time {time.process_time():.0f} s")
