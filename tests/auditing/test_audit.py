"""The audit's face: refusals by name, ties, infinities, seeds, what a result says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psidp
from psidp import Guarantee, audit

RNG = np.random.default_rng(1)
INS, OUTS = RNG.normal(1, 1, 200), RNG.normal(0, 1, 200)
METHODS = ("both", "pairs", "ranks", "threshold")


@pytest.mark.parametrize(
    ("ins", "sentence"),
    [
        ([], r"in_scores \(scores of the attack\) must have at least one score, got none"),
        ([1.0, float("nan")], r"in_scores .* must not hold NaN, got NaN at index 1"),
        ([[1.0, 2.0]], r"in_scores .* must be one row of numbers, got shape \(1, 2\)"),
        (3.0, r"in_scores .* must be one row of numbers, got shape \(\)"),
    ],
)
def test_scores_that_cannot_be_ranked_are_refused_by_name(ins, sentence):
    with pytest.raises(ValueError, match=sentence):
        audit(ins, OUTS)


@pytest.mark.parametrize(
    "ins", [["a"], [[1.0], [1.0, 2.0]], [1j], np.ma.masked_array([1.0], [True]), [None], [np.ma.masked, 1.0]]
)
def test_what_is_no_number_is_refused_by_type(ins):
    with pytest.raises(TypeError, match="in_scores"):
        audit(ins, OUTS)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 1.5, float("nan")])
def test_confidence_outside_its_domain_is_refused(confidence):
    with pytest.raises(ValueError, match=r"confidence .* must be in \(0, 1\)"):
        audit(INS, OUTS, confidence)


def test_a_method_and_its_threshold_go_together():
    with pytest.raises(ValueError, match="threshold must be given"):
        audit(INS, OUTS, method="clopper-pearson")
    with pytest.raises(ValueError, match="threshold must be given"):
        audit(INS, OUTS, threshold=0.5)
    with pytest.raises(ValueError, match="must be a finite number"):
        audit(INS, OUTS, method="clopper-pearson", threshold=float("nan"))
    with pytest.raises(ValueError, match="method must be one of"):
        audit(INS, OUTS, method="bootstrap")


def test_a_claim_is_a_guarantee_and_zero_is_one():
    with pytest.raises(TypeError, match="claimed must be a Guarantee"):
        audit(INS, OUTS, claimed=1.0)
    with pytest.raises(ValueError, match="psi"):
        audit(INS, OUTS, claimed=Guarantee(-1.0))
    assert audit(INS, OUTS, claimed=Guarantee(0.0), seed=1).refuted
    assert not audit(OUTS, OUTS, claimed=Guarantee(0.0), seed=1).refuted


def test_scores_of_one_run_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"Use psidp\.audit_one_run"):
        audit(INS, OUTS, scores_from="one run")
    with pytest.raises(ValueError, match="scores_from must be"):
        audit(INS, OUTS, scores_from="two runs")


@pytest.mark.parametrize("method", METHODS)
def test_constant_scores_prove_nothing_since_ties_count_against_the_auditor(method):
    assert audit(np.zeros(300), np.zeros(300), method=method, seed=1).psi == 0.0
    assert audit(np.zeros(300), np.zeros(300), method=method, seed=1).auc == 0.5


@pytest.mark.parametrize("method", METHODS)
def test_separated_scores_prove_much_and_upside_down_ones_nothing(method):
    high, low = np.full(500, np.inf), np.full(500, -np.inf)
    assert audit(high, low, method=method, seed=1).psi > 2.5
    assert audit(low, high, method=method, seed=1).psi == 0.0


def test_one_score_a_side_proves_nothing():
    for method in METHODS:
        assert audit([1.0], [0.0], method=method, seed=1).psi == 0.0


def test_only_ranks_matter():
    for method in METHODS:
        one = audit(INS, OUTS, method=method, seed=3)
        two = audit(np.exp(INS), np.exp(OUTS), method=method, seed=3)
        assert one.psi == two.psi


def test_the_seed_is_kept_and_gives_the_same_numbers_again():
    first = audit(INS, OUTS, method="pairs", claimed=Guarantee(0.5))
    again = audit(INS, OUTS, method="pairs", claimed=Guarantee(0.5), seed=first.seed)
    assert first.to_dict() == again.to_dict()


@pytest.mark.parametrize("seed", [-1, 0.5, True, "a"])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ValueError, match=r"seed .* must be a whole number"):
        audit(INS, OUTS, seed=seed)


def test_the_order_of_the_scores_does_not_matter():
    for method in METHODS:
        assert audit(INS[::-1], np.sort(OUTS), method=method, seed=3).psi == audit(INS, OUTS, method=method, seed=3).psi


def test_bound_and_p_value_agree_on_the_claim():
    for method in METHODS:
        bound = audit(INS, OUTS, method=method, seed=3).psi
        assert audit(INS, OUTS, method=method, seed=3, claimed=Guarantee(bound - 0.01)).refuted
        assert not audit(INS, OUTS, method=method, seed=3, claimed=Guarantee(bound + 0.01)).refuted


def test_where_ranks_do_not_reach_the_exact_pairs_take_their_place():
    rng = np.random.default_rng(2)
    ins, outs = rng.normal(1, 1, 2000), rng.normal(0, 1, 2000)
    result = audit(ins, outs, 1 - 1e-6, seed=1)
    assert result.used == ("pairs", "threshold")
    assert 0.6 < result.psi < 1.0
    assert audit(ins, outs, seed=1).used == ("ranks", "threshold")


def test_through_psi_epsilon_is_larger_and_only_right_for_gaussian_mechanisms():
    rng = np.random.default_rng(3)
    truth = 1.0  # randomised response: its psi is 1.232, and epsilon never exceeds 1
    keep = np.e / (1 + np.e)
    ins, outs = (rng.random(20_000) < keep).astype(float), (rng.random(20_000) < 1 - keep).astype(float)
    result = audit(ins, outs, seed=1)
    assert 1.1 < result.psi < 1.232
    assert 0.9 < result.epsilon(1e-5) < truth
    assert result.epsilon(1e-5, "gaussian") > 4.5
    with pytest.raises(ValueError, match="mechanism must be"):
        result.epsilon(1e-5, "laplace")


def test_epsilon_through_psi_is_the_psi_mechanisms_own_and_never_above():
    result = audit(INS, OUTS, seed=1)
    truth = psidp.epsilon_from_psi(result.psi, 1e-5)
    assert truth * (1 - 1e-8) < result.epsilon(1e-5, "gaussian") <= truth


score = st.integers(-9, 9).map(float) | st.floats(allow_nan=False)  # ties, and any other
row = st.lists(score, min_size=1, max_size=30)


@settings(max_examples=40)
@given(row, row, st.sampled_from(METHODS), st.floats(0.01, 0.999))
def test_any_scores_get_an_answer_that_hangs_together(ins, outs, method, confidence):
    result = audit(ins, outs, confidence, method, claimed=Guarantee(0.5), seed=1)
    assert 0.0 <= result.psi <= 12.0
    assert 0.0 < result.p_value <= 1.0
    assert result.auc_interval[0] <= result.auc_interval[1]
    low, high = result.tpr(0.1)
    assert 0.0 <= low <= high <= 1.0
    assert result.epsilon(0.01) >= 0.0
    band = result.roc()
    assert ((band.lower <= band.tpr) & (band.tpr <= band.upper)).all()


def test_psi_is_exported_with_its_result():
    assert isinstance(audit(INS, OUTS, seed=1), psidp.AuditResult)
