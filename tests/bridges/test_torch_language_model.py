"""The example of the language model runs, at a reduced setting, and its pieces do what they say."""

import importlib.util
import random
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore")

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "language_model.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("language_model_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_trains_within_its_epsilon_and_says_what_came_of_it(example, capsys):
    threads = torch.get_num_threads()
    try:
        result = example.main(epsilon=8.0, epochs=1, sentences=300, lessons=10)
    finally:
        torch.set_num_threads(threads)
    assert 7.9 < result.epsilon <= 8.0
    assert 1.0 < result.after < result.before
    shown = capsys.readouterr().out
    assert f"certified epsilon {result.epsilon:.4f} at delta 1e-05" in shown
    assert "perplexity on public notes" in shown
    assert "310 notes, 25 steps" in shown


def test_every_sentence_fits_the_public_length_and_the_secrets_are_among_the_private_notes(example):
    ordinary, public, private, hidden = example.corpus(50, seed=3)
    assert set(hidden) <= set(private)
    assert not set(hidden) & set(public)
    assert all(
        len(example.encoded(sentence)["input_ids"]) <= example.LENGTH for sentence in ordinary + public + private
    )


def test_digits_are_counted_as_guessed_where_the_model_knows_them(example):
    numbers = example.secrets(random.Random(4))

    class Knows(torch.nn.Module):
        def __init__(self, right):
            super().__init__()
            self.right = right

        def forward(self, input_ids, attention_mask):
            following = input_ids.roll(-1, 1) if self.right else torch.full_like(input_ids, example.IDS["<pad>"])
            logits = torch.nn.functional.one_hot(following, len(example.IDS)).float()
            return type("Output", (), {"logits": logits})()

    assert example.guessed(Knows(True), numbers) == 1.0
    zeros = sum(number.split()[4:8].count("0") for number in numbers) / 40
    assert example.guessed(Knows(False), numbers) == pytest.approx(zeros)
