"""Post-processing: same guarantee, named steps, and the errors the books promise."""

import numpy as np
import pytest

import psidp
from psidp import GaussianMechanism, denoise


@pytest.fixture
def mechanism():
    return GaussianMechanism(1.0, 1.0)


def test_no_step_costs_anything_and_each_is_named(mechanism):
    release = mechanism.release(np.linspace(-1, 5, 50))
    for step in (denoise.james_stein, denoise.soft_threshold, denoise.non_negative):
        after = step(release)
        assert after.guarantee == release.guarantee
        assert after.steps == (step.__name__,)
        assert release.steps == ()
    both = denoise.to_sum(denoise.non_negative(release), 10.0)
    assert both.steps == ("non_negative", "to_sum")


def test_shrinking_beats_the_raw_vector_where_the_truth_is_small(mechanism):
    """d = 2000, |x| = sigma sqrt(d)/2: James and Stein leave about a fifth of the error, here asked to halve it."""
    truth = np.full(2000, 0.5)
    release = mechanism.release(truth)
    raw = ((release.value - truth) ** 2).sum()
    assert ((denoise.james_stein(release).value - truth) ** 2).sum() < 0.5 * raw


def test_shrinking_never_hurts_on_average(mechanism):
    """400 releases in three dimensions each, truths small and large; 6 standard errors are exceeded once in 10^9."""
    for scale in (0.0, 1.0, 30.0):
        truth = np.array([scale, 0.0, -scale])
        gains = []
        for _ in range(400):
            release = mechanism.release(truth)
            gains.append(
                ((release.value - truth) ** 2).sum() - ((denoise.james_stein(release).value - truth) ** 2).sum()
            )
        assert np.mean(gains) > -6 * np.std(gains) / 20


def test_thresholds_find_the_few_large_entries(mechanism):
    truth = np.zeros(5000)
    truth[:10] = 50.0
    release = mechanism.release(truth)
    value = denoise.soft_threshold(release).value
    assert (value[:10] > 30).all()
    assert (value[10:] == 0).mean() > 0.998  # 0.18 of 4990 stay on average: ten or more with probability 1e-14
    assert ((value - truth) ** 2).sum() < 0.2 * ((release.value - truth) ** 2).sum()


def test_projections_land_where_they_should(mechanism):
    release = mechanism.release(np.array([3.0, -1.0, 0.2, 5.0]))
    assert (denoise.non_negative(release).value >= 0).all()
    assert denoise.to_sum(release, 12.0).value.sum() == pytest.approx(12.0)
    simplex = denoise.to_simplex(release, 12.0).value
    assert simplex.sum() == pytest.approx(12.0)
    assert (simplex >= 0).all()


def test_the_simplex_projection_is_the_nearest_point(mechanism):
    """No random point of the simplex is nearer."""
    release = mechanism.release(np.array([2.0, -3.0, 0.5, 0.4, 4.0]))
    nearest = denoise.to_simplex(release, 5.0).value
    points = np.random.default_rng(0).dirichlet(np.ones(5), 20_000) * 5.0
    distance = ((points - release.value) ** 2).sum(axis=1)
    assert ((nearest - release.value) ** 2).sum() <= distance.min() + 1e-9


def test_whole_numbers_stay_whole_when_cut_at_nought(mechanism):
    assert denoise.non_negative(mechanism.release(-1000, integers=True)).value == 0
    assert denoise.non_negative(mechanism.release(-1000.0)).value == 0.0


def test_errors_are_not_claimed_after_a_step(mechanism):
    after = denoise.james_stein(mechanism.release(np.zeros(5)))
    with pytest.raises(
        ValueError, match="confidence_interval is known only for the noisy value itself, not after james"
    ):
        after.confidence_interval()
    with pytest.raises(ValueError, match="mean_squared_error is known only"):
        _ = after.mean_squared_error


def test_nonsense_is_refused(mechanism):
    release = mechanism.release(np.zeros(2))
    with pytest.raises(ValueError, match="at least 3 entries, got 2"):
        denoise.james_stein(release)
    with pytest.raises(ValueError, match=r"total .* must be finite"):
        denoise.to_sum(release, float("nan"))
    with pytest.raises(ValueError, match=r"total .* must be above 0"):
        denoise.to_simplex(release, -1.0)
    origin = release.after("test", np.zeros(5))
    assert not denoise.james_stein(origin).value.any()


def answered(*asks, **question):
    """One full group and nine empty ones, asked with much noise: that no count is below 0 has a chance of 2^-36."""
    import pandas as pd

    rows = pd.DataFrame({"person": range(40), "ward": ["a"] * 40, "cost": np.linspace(-5.0, 5.0, 40)})
    curator = psidp.Curator(rows, unit="person")
    return curator.release(*asks, by="ward", groups=list("abcdefghij"), psi=0.05, **question)


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


def test_an_answer_without_counts_and_other_steps_on_an_answer_are_refused_by_name():
    from psidp import ask

    answer = answered(ask.mean("cost", -5, 5), contribution=1)
    with pytest.raises(ValueError, match=r"answer must hold counts, units or histograms .* got mean of cost\."):
        denoise.non_negative(answer)
    steps = [denoise.james_stein, denoise.soft_threshold]
    steps += [lambda a: denoise.to_sum(a, 1.0), lambda a: denoise.to_simplex(a, 1.0)]
    for step in steps:
        with pytest.raises(
            TypeError, match=r"must be a Release, .* got Answer\. Of a curator's answer, denoise\.non_neg"
        ):
            step(answer)
    for step in (denoise.non_negative, *steps):
        with pytest.raises(
            TypeError, match=r"must be a Release, what GaussianMechanism\.release gave back, got ndarray"
        ):
            step(np.ones(5))
