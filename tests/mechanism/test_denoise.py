"""Post-processing: the same guarantee, and a named step."""

import numpy as np
import pytest

import psidp
from psidp import GaussianMechanism, denoise


@pytest.fixture
def mechanism():
    return GaussianMechanism(1.0, 1.0)


def test_the_step_costs_nothing_and_is_named(mechanism):
    release = mechanism.release(np.linspace(-1, 5, 50))
    after = denoise.non_negative(release)
    assert (after.value >= 0).all()
    assert after.guarantee == release.guarantee
    assert (after.steps, release.steps) == (("non_negative",), ())


def test_whole_numbers_stay_whole_when_cut_at_nought(mechanism):
    assert denoise.non_negative(mechanism.release(-1000, integers=True)).value == 0
    assert denoise.non_negative(mechanism.release(-1000.0)).value == 0.0


def test_errors_are_not_claimed_after_a_step(mechanism):
    after = denoise.non_negative(mechanism.release(np.zeros(5)))
    with pytest.raises(
        ValueError, match="confidence_interval is known only for the noisy value itself, not after non_negative"
    ):
        after.confidence_interval()
    with pytest.raises(ValueError, match="mean_squared_error is known only"):
        _ = after.mean_squared_error


def answered(*asks, **question):
    """One full group and nine empty ones, asked with much noise: that no count is below 0 has a chance of 2^-36."""
    import pandas as pd

    rows = pd.DataFrame({"person": range(40), "ward": ["a"] * 40, "cost": np.linspace(-5.0, 5.0, 40)})
    curator = psidp.Curator(rows, unit="person")
    return curator.ask(*asks, by="ward", groups=list("abcdefghij"), **question).release(psi=0.05)


def test_no_count_of_an_answer_is_below_zero_and_its_intervals_still_cover():
    from psidp import ask

    answer = answered(
        ask.count(), ask.units(), ask.histogram("cost", [-5, 0, 5]), ask.sum("cost", -5, 5), contribution=1
    )
    after = denoise.non_negative(answer)
    assert min(row["value"] for row in answer) < 0.0
    for before, row in zip(answer, after, strict=True):
        if row["statistic"].startswith("sum"):
            assert row == before
        else:
            assert [row[name] for name in ("value", "lower", "upper")] == [
                max(before[name], 0.0) for name in ("value", "lower", "upper")
            ]
            assert row["lower"] <= row["value"] <= row["upper"]
        if not before["lower"] <= 0.0 <= before["upper"] or row["statistic"].startswith("sum"):
            continue
        assert row["lower"] == 0.0  # a truth of 0, covered before, is covered now
    assert (after.guarantee, after.confidence, after.by) == (answer.guarantee, answer.confidence, answer.by)
    assert after.notes[:-1] == answer.notes
    assert str(after.notes[-1]).startswith("non_negative: counts below 0 were set to 0")
    assert type(after).from_dict(after.to_dict()).rows == after.rows


def test_an_answer_without_counts_and_plain_numbers_are_refused_by_name():
    from psidp import ask

    answer = answered(ask.mean("cost", -5, 5), contribution=1)
    with pytest.raises(ValueError, match=r"answer must hold counts, units or histograms .* got mean of cost\."):
        denoise.non_negative(answer)
    with pytest.raises(TypeError, match=r"must be a Release, what GaussianMechanism\.release gave back.* got ndarray"):
        denoise.non_negative(np.ones(5))
