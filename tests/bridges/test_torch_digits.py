"""The example of the digits runs, at a reduced setting, and its pieces do what they say."""

import importlib.util
from pathlib import Path

import pytest
import torch

import psidp

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "digits.py"


@pytest.fixture(scope="module")
def digits():
    spec = importlib.util.spec_from_file_location("digits_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_writes_a_picture_and_cards_and_every_promise_stands_the_audit(digits, tmp_path, capsys):
    """False alarm below 1e-6: only 40 right guesses of 40 would refute psi = 1, and nothing that 40 can say psi = 2."""
    picture = digits.main(tmp_path, levels=(1.0, 2.0), steps=40, canaries=40)
    assert picture.read_text().startswith("<svg")
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["digits-psi-1.html", "digits-psi-2.html"]
    assert "with confidence 0.95 (one run, 40 canaries)" in (tmp_path / "digits-psi-1.html").read_text()
    shown = capsys.readouterr().out
    assert "epoch 2 of 2: epsilon" in shown
    assert "psi audited, at least" in shown


def test_a_canary_moves_its_own_weight_and_no_digit_does(digits):
    model = digits.Reader(3)
    x, y = digits.with_canaries(digits.digits()[0], torch.tensor([True, False, True]))
    assert len(x) == digits.TRAINING + 2
    for number, pixel in ((0, None), (-2, 0), (-1, 2)):
        model.zero_grad()
        digits.loss(model(x[number : number + 1 or None]), y[number : number + 1 or None]).backward()
        wanted = torch.zeros(1, 3) if pixel is None else -digits.BRIGHT * torch.eye(3)[pixel : pixel + 1]
        assert model.canary.weight.grad.equal(wanted)
        others = sum(float(p.grad.abs().sum()) for p in model.digit.parameters())
        assert (others > 0) == (pixel is None)


def test_a_training_with_too_little_noise_does_not_stand_the_audit(digits):
    """The same canaries, against the promise of a tenth of the psi: the audit has teeth.

    No number of right guesses of 300 refutes psi = 5; 128 of 150 refute psi = 0.5: eleven deviations more are right.
    """
    included = torch.rand(300) < 0.5
    model = digits.Reader(300)
    trainer = psidp.bridges.torch.PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=1.0), digits.loss,
        digits.with_canaries(digits.digits()[0], included), sampling_rate=0.5, clip=1.0, steps=8, psi=5.0,
        expected_batch=0.5 * 1600, micro_batch=100,
    )  # fmt: skip
    training = trainer.fit()
    scores = model.canary.weight.detach().reshape(-1).numpy()
    assert not psidp.audit_one_run(included.numpy(), scores, claimed=training.guarantee).refuted
    assert psidp.audit_one_run(included.numpy(), scores, claimed=psidp.Guarantee(0.5)).refuted
