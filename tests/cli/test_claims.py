"""Vendors' claims: what each is worth where nobody said that the mechanism is Gaussian; names in a comparison."""

import json

import pytest

import psidp
from psidp.present.claims import any_mechanism, which_applies


def test_a_claim_is_read_twice_and_it_is_said_which_reading_applies_when(run):
    code, out, _ = run("explain", "--zcdp", "0.5", "--any-mechanism", "--unit", "aircraft")
    words = " ".join(out.split())
    assert code == 0
    assert "psi = Delta/sigma 1 1.54046" in words
    assert "psi = 1 applies if the mechanism is known to be Gaussian" in words
    assert "If the claim is all that is known, psi = 1.541, except with probability 1e-6, applies" in words
    assert "an aircraft being in the data" in words


CLAIMS = {
    "zcdp": ({"zcdp": 0.5}, psidp.Guarantee.from_zcdp(0.5, 1e-6)),
    "rdp": ({"alpha": 8.0, "rho": 0.5}, psidp.Guarantee.from_rdp(8.0, 0.5, 1e-6)),
    "approximate": ({"epsilon": 1.0, "delta": 1e-5}, psidp.Guarantee.from_approximate(1.0, 1e-5)),
    "pure": ({"epsilon": 1.0}, psidp.Guarantee.from_pure(1.0)),
    "psi": ({"psi": 0.7}, psidp.Guarantee(0.7)),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_json_has_both_readings(run, name):
    claim, covering = CLAIMS[name]
    flags = [word for notion, value in claim.items() for word in (f"--{notion}", str(value))]
    code, out, _ = run("explain", *flags, "--any-mechanism", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["any_mechanism"]["guarantee"] == covering.to_dict()
    assert any_mechanism(claim) == covering
    if name == "pure":
        assert told["guarantee"] is None
        assert "its odds grow 2.72 times at most" in told["which_applies"]
    else:
        gaussian = psidp.Guarantee.gaussian(**claim)
        assert told["guarantee"] == gaussian.to_dict()
        assert covering.psi >= gaussian.psi
        assert told["which_applies"] == which_applies(gaussian, covering, claim)


@pytest.mark.parametrize("name", ["zcdp", "rdp", "approximate", "pure"])
def test_the_reading_for_any_mechanism_covers_the_gaussian_one_and_more(name):
    claim, covering = CLAIMS[name]
    if name != "pure":
        gaussian = psidp.Guarantee.gaussian(**claim)
        for epsilon in (0.0, 0.5, 1.0, 3.0):
            assert covering.delta(epsilon) >= gaussian.delta(epsilon)
    response = psidp.Guarantee.from_pure(1.0)
    assert response.delta(0.0) >= (2.718281828 - 1) / (2.718281828 + 1)  # randomised response


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "explain --auc 0.7 --any-mechanism",
            "any mechanism is read from epsilon, epsilon and delta, zcdp, alpha and rho",
        ),
        ("explain --psi 1 --kappa 0.1", "--kappa goes with --any-mechanism, got 0.1."),
        ("explain --zcdp 1 --any-mechanism --kappa 0", "kappa"),
        ("compare :psi=1", "a name before a colon must not be empty"),
        ("compare a:psi=1 a:psi=2", "two mechanisms must have two names, got 'a' twice."),
    ],
)
def test_nonsense_is_refused_in_a_sentence(run, words, sentence):
    code, _, err = run(*words.split())
    assert (code, sentence in err) == (2, True), err


def test_compare_shows_names_and_what_they_stand_for(run):
    code, out, _ = run("compare", "old:psi=1", "new survey:epsilon=1,delta=1e-5", "psi=1", "--json")
    rows = json.loads(out)["mechanisms"]
    assert code == 0
    assert (rows[0]["name"], rows[0]["mechanism"]) == ("new survey", "epsilon=1,delta=1e-5")
    assert [row["name"] for row in rows][1:] == ["old", "psi=1"]
    _, out, _ = run("compare", "old:psi=1", "new:psi=2")
    assert out.index("old") < out.index("new")
