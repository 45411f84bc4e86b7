"""The card: valid under its schema, the same after a round trip, escaped, two pages, made again by its command."""

import json
import re
import shlex
from html.parser import HTMLParser

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psidp
from psidp.present.card import card, to_html, to_markdown, validate
from psidp.present.card.record import Audited, Card, Mechanism, Scope
from psidp.present.card.schema import schema
from psidp.present.formatting import up

EVIL = "</title><script>alert(1)</script><img src=x onerror=alert(1)> & \"q\" 'a' `b` | [x](javascript:alert(1))"
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)


def full(**more):
    said = {
        "title": EVIL,
        "mechanism": Mechanism("DP-SGD", 1.0, 2.0, 1.1, 0.01, 1000, "Poisson"),
        "scope": Scope(EVIL, EVIL, EVIL, (EVIL, "b"), (EVIL,)),
        "ledger_head": EVIL,
        "audit": Audited(0.5, 0.9, 0.95, EVIL),
        "regret": 0.001,
        "date": "2026-01-31",
    }
    return card(psidp.Guarantee(1.0, 1e-6, "replace-one", EVIL), **said | more)


CARDS = [card(psidp.Guarantee(1.0)), card(psidp.Guarantee(0.0)), card(psidp.Guarantee(40.0, 0.5), prior=1.0), full()]


@pytest.mark.parametrize("made", CARDS, ids=["plain", "perfect", "hopeless", "full"])
def test_the_json_is_valid_and_round_trips(made):
    values = json.loads(made.to_json())
    jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker()).validate(values)
    validate(values)
    assert Card.from_json(made.to_json()) == made


@settings(max_examples=30)
@given(psi=st.floats(0, 50), kappa=st.floats(0, 0.99), unit=WORDS.filter(str.strip), title=WORDS, prior=st.floats(0, 1))
def test_any_card_is_valid_and_round_trips(psi, kappa, unit, title, prior):
    made = card(psidp.Guarantee(psi, kappa, unit=unit), title=title, prior=prior, date="2026-01-31")
    jsonschema.Draft202012Validator(schema()).validate(json.loads(made.to_json()))
    assert Card.from_json(made.to_json()) == made


def test_the_schema_itself_is_a_schema_and_ours_agrees_with_jsonschema():
    jsonschema.Draft202012Validator.check_schema(schema())
    good = json.loads(full().to_json())
    judge = jsonschema.Draft202012Validator(schema())
    for path, bad in BAD.items():
        values = json.loads(json.dumps(good))
        place = values
        *way, last = path
        for step in way:
            place = place[step]
        place[last] = bad
        assert not judge.is_valid(values), path
        with pytest.raises(ValueError, match="card"):
            validate(values)


BAD = {
    ("card",): "psidp.card/2",
    ("extra",): 1,
    ("guarantee", "psi"): -1.0,
    ("guarantee", "kappa"): 1.0,
    ("guarantee", "adjacency"): "both",
    ("guarantee", "unit"): True,
    ("title",): 5,
    ("derived", "auc"): 0.4,
    ("derived", "epsilon_at_delta", 0, "epsilon"): "many",
    ("mechanism", "steps"): 1.5,
    ("audit", "confidence"): 1.0,
    ("sentences",): "one",
    ("ledger",): {},
}  # fmt: skip


def test_a_card_that_contradicts_itself_is_refused():
    values = json.loads(card(psidp.Guarantee(1.0)).to_json())
    values["guarantee"]["psi"] = 0.5
    with pytest.raises(ValueError, match="contradicts itself"):
        Card.from_json(json.dumps(values))


def test_the_card_says_what_the_library_says():
    g = psidp.Guarantee.gaussian(epsilon=1, delta=1e-5, unit="patient")
    derived = card(g, prior=0.05).derived
    assert derived["auc"] == g.auc
    assert derived["advantage"] == g.advantage
    assert [row["epsilon"] for row in derived["epsilon_at_delta"]] == [g.epsilon(d) for d in (1e-3, 1e-5, 1e-8)]
    assert [row["tpr"] for row in derived["tpr_at_fpr"]] == [g.roc(0.01), g.roc(0.001)]
    assert derived["ppv"]["ppv"] == pytest.approx(psidp.theory.positive_predictive_value(g.psi, 0.01, 0.05), rel=1e-14)
    assert derived["reconstruction"]["bound"] == psidp.theory.reconstruction_bound(g.psi, 0.05)


def test_a_run_becomes_a_card_with_its_regret(run):
    curve = psidp.account(psidp.DPSGD(1.0, 0.01, 1000))
    made = card(curve, kappa=1e-8, date="2026-01-31")
    assert made.guarantee == curve.guarantee(1e-8)
    assert made.regret == curve.regret(1e-8).upper
    flags = "--noise-multiplier 1 --sampling-rate 0.01 --steps 1000 --kappa 1e-8 --date 2026-01-31 --format json"
    code, out, _ = run("card", *flags.split())
    assert code == 0
    told = Card.from_json(out)
    assert (told.guarantee, told.regret) == (made.guarantee, made.regret)
    assert (told.mechanism.name, told.mechanism.sampling, told.mechanism.steps) == ("DP-SGD", "Poisson", 1000)
    assert "regret of that psi | at most" in to_markdown(told)


RUNS = [(1.0, 0.01, 1000), (0.55, 0.02, 500), (2.0, 0.2, 100), (4.0, 1.0, 10)]


@pytest.mark.parametrize("numbers", RUNS)
def test_the_card_of_a_run_tells_its_certified_numbers_to_the_printed_digits(numbers, run):
    event = psidp.DPSGD(*numbers)
    curve, made = psidp.account(event), card(event, delta=1e-6)
    derived = made.derived
    told = {row["delta"]: row["epsilon"] for row in derived["epsilon_at_delta"]}
    assert told == {d: curve.epsilon(d).upper for d in (1e-3, 1e-5, 1e-6, 1e-8)}
    assert [row["delta"] for row in derived["delta_at_epsilon"]] == [curve.delta(e).upper for e in (0.0, 1.0, 3.0)]
    assert (derived["advantage"], derived["auc"]) == (curve.advantage.upper, curve.auc.upper)
    exact = [curve.roc(x).upper for x in (0.01, 0.001, 0.1)]
    tpr = [row["tpr"] for row in derived["tpr_at_fpr"]] + [derived["reconstruction"]["bound"]]
    assert all(a * (1.0 - 1e-9) <= b <= a * (1.0 + 1e-5) for a, b in zip(exact, tpr, strict=True))
    printed = f"epsilon at delta = 1e-6, certified | {up(curve.epsilon(1e-6).upper)} |"
    assert printed in to_markdown(made)
    flags = [f"--{n}={v}" for n, v in zip(("noise-multiplier", "sampling-rate", "steps"), numbers, strict=True)]
    code, out, _ = run("card", *flags, "--delta", "1e-6")
    assert (code, printed in out) == (0, True)
    assert f"epsilon = {up(curve.epsilon(1e-6).upper)}" in to_html(made)


def test_a_run_calibrated_to_epsilon_8_reads_8_and_its_covering_psi_is_named_as_such(run):
    noise = psidp.calibrate(epsilon=8.0, delta=1e-5, sampling_rate=0.02, steps=500)
    made = card(psidp.DPSGD(noise, 0.02, 500), date="2026-01-31")
    assert made.epsilon <= 8.0 < made.guarantee.epsilon(1e-5)
    text = to_markdown(made)
    assert "| epsilon at delta = 1e-5, certified | 8 |" in text
    assert f"| psi that covers all of it | {up(made.guarantee.psi, 6)} |" in text
    assert "<b>epsilon = 8</b> at delta = 1e-5 per record" in to_html(made)
    assert up(made.guarantee.epsilon(1e-5)) not in text


SERIES = psidp.account([psidp.DPSGD(1.0, 0.01, 500, unit="patient"), psidp.Guarantee(0.2, 1e-12, unit="patient")])
FAILING = psidp.account([psidp.DPSGD(1.0, 0.01, 1000), psidp.Guarantee(0.0, 1e-16)])
FIXED = psidp.DPSGD(2.0, 0.05, 100, sampling="without-replacement")


@pytest.mark.parametrize("promise", [SERIES, FAILING, FIXED], ids=["series", "with failure", "fixed batches"])
def test_cards_of_accounts_are_valid_round_trip_and_are_made_again_by_their_command(run, promise):
    made = card(promise, title="A run", delta=1e-7, date="2026-01-31")
    values = json.loads(made.to_json())
    jsonschema.Draft202012Validator(schema()).validate(values)
    assert Card.from_json(made.to_json()) == made
    code, out, err = run(*shlex.split(values["made"]["command"])[1:], "--format", "json")
    assert (code, err) == (0, "")
    assert Card.from_json(out) == made
    curve = promise if isinstance(promise, psidp.PrivacyCurve) else psidp.account(promise)
    assert made.epsilon == curve.epsilon(1e-7).upper


def test_an_account_on_a_card_cannot_be_changed_and_cards_without_one_are_read_as_before():
    values = json.loads(card(psidp.DPSGD(1.0, 0.01, 1000)).to_json())
    for name, other in (("steps", 2000), ("noise_multiplier", 1.1)):
        changed = json.loads(json.dumps(values))
        changed["events"][0][name] = other
        with pytest.raises(ValueError, match=r"the card contradicts itself: its (events need|derived do not)"):
            Card.from_json(json.dumps(changed))
    old = json.loads(card(psidp.Guarantee(0.5, 1e-10)).to_json())
    del old["events"], old["delta"]
    assert Card.from_json(json.dumps(old)).guarantee == psidp.Guarantee(0.5, 1e-10)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--epsilon", "8", "--delta", "1e-5"], "a run's numbers come from its account, got --epsilon. Leave it out."),
        (["--delta", "1"], "delta (probability slack of (epsilon, delta)-DP) must be in (0, 1), got delta=1.0."),
        (["--events", "{}"], "--events must be a JSON list of runs and guarantees, got '{}'."),
        (["--events", '[{"psi": -1}]'], "psi (sensitivity index Delta/sigma) must be in [0, inf)"),
    ],
)
def test_a_run_with_numbers_of_somebody_elses_is_refused(run, words, sentence):
    code, _, err = run("card", "--noise-multiplier=1", "--sampling-rate=0.01", "--steps=1000", *words)
    assert (code, sentence in err) == (2, True)


def test_a_chance_to_fail_goes_with_a_run(run):
    code, _, err = run("card", "--psi", "1", "--failure", "1e-9")
    assert (code, "--failure goes with --noise-multiplier" in err) == (2, True)


class Strict(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.data = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.data += data


def test_every_name_is_escaped_in_html():
    reader = Strict()
    reader.feed(to_html(full()))
    tags = {tag for tag, _ in reader.tags}
    assert not tags & {"script", "img", "a", "iframe", "link"}
    assert not any(name.startswith("on") for _, attributes in reader.tags for name in attributes)
    assert reader.data.count(EVIL) >= 6


def test_every_name_is_escaped_in_markdown():
    text = to_markdown(full())
    body = text[: text.rindex("This card is computed again")].replace("**psi = 1**", "")
    assert "<script" not in body.replace("\\<", "")
    assert not re.search(r"(?<!\\)[<>`|*]", re.sub(r"^\|.*?\|$|^[#|].*", "", body, flags=re.MULTILINE))
    for line in body.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 4, line


@pytest.mark.parametrize("made", CARDS, ids=["plain", "perfect", "hopeless", "full"])
def test_the_command_on_the_card_makes_it_again(run, made):
    words = shlex.split(json.loads(made.to_json())["made"]["command"])
    assert words[:2] == ["psidp", "card"]
    code, out, err = run(*words[1:], "--format", "json")
    assert (code, err) == (0, "")
    assert Card.from_json(out) == made


def test_it_prints_on_two_pages_of_a4_and_loads_nothing(chromium, tmp_path, artefacts):
    (tmp_path / "card.html").write_text(to_html(full(title="Mean age <2026>")), encoding="utf-8")
    context, troubles = chromium.new_context(offline=True), []
    page = context.new_page()
    page.on("console", lambda message: troubles.append(message.text))
    page.on("dialog", lambda dialog: troubles.append(dialog.message))
    page.goto((tmp_path / "card.html").as_uri())
    plain = tmp_path / "plain.html"
    page.screenshot(path=artefacts / "card.png", full_page=True)
    plain.write_text(to_html(card(psidp.Guarantee(1.0), title="Mean age")), encoding="utf-8")
    page.goto(plain.as_uri())
    pdfs = [page.pdf(prefer_css_page_size=True)]
    run = card(
        FAILING, title="A classifier", delta=1e-6, ledger_head="5f" * 32, audit=Audited(0.1, None, 0.95, "ranks")
    )
    plain.write_text(to_html(run), encoding="utf-8")
    page.goto(plain.as_uri())
    page.screenshot(path=artefacts / "card_of_a_run.png", full_page=True)
    pdfs.append(page.pdf(prefer_css_page_size=True))
    context.close()
    assert troubles == []
    assert [len(re.findall(rb"/Type\s*/Page\b", pdf)) for pdf in pdfs] == [2, 2]


@pytest.mark.parametrize("suffix", ["html", "md", "json"])
def test_psidp_card_writes_each_format(run, tmp_path, suffix):
    target = tmp_path / f"card.{suffix}"
    code, _, err = run("card", "--sensitivity", "1", "--sigma", "2", "--unit", "patient", "-o", str(target))
    assert (code, err) == (0, f"{target} written\n")
    assert "patient" in target.read_text()


def test_psidp_card_takes_an_audit_from_a_file_and_says_when_a_promise_is_broken(run, tmp_path):
    (tmp_path / "audit.json").write_text('{"psi": 1.4, "confidence": 0.95, "method": "ranks", "n_in": 100}')
    code, out, _ = run("card", "--psi", "1", "--audit", str(tmp_path / "audit.json"))
    assert code == 0
    assert "psi at least 1.4, with confidence 0.95 (ranks): the promise is broken" in out
    warned = "An audit contradicts this promise: psi is at least 1.4, with confidence 0.95."
    assert out.splitlines()[2].startswith(f"**{warned}")
    flags = ["card", "--psi", "1", "--audit", str(tmp_path / "audit.json"), "--format", "html"]
    page = run(*flags)[1]
    assert page.index(warned) < page.index("Someone who must tell")
    assert "contradicts" not in run("card", "--psi", "2", *flags[3:])[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--psi", "nan"], "psi (sensitivity index Delta/sigma) must be in [0, inf), got psi=nan."),
        (["--psi", "1", "--prior", "2"], "prior (probability of membership before the release) must be in [0, 1]"),
        (["--psi", "1", "--format", "pdf"], "format must be one of html, md, json, got format='pdf'."),
        (["--psi", "1", "--audit", '{"n": 1}'], "--audit must be an audit result with psi"),
        (["--psi", "1", "--audit", "{"], "psidp audit scores.csv --json > audit.json writes one."),
        (["--psi", "1", "--audit-link", "audit.html"], "--audit-link goes with --audit"),
        (["--psi", "1", "--date", "today"], "date must be a day as YYYY-MM-DD, such as 2026-01-31, got date='today'."),
        (["--psi", "1", "--sensitivity", "1", "--sigma", "0.1"], "the card contradicts itself: noise of sigma=0.1"),
        (["--psi", "1", "--regret", "-1"], "regret (how far psi overstates the loss) must be in [0, 1]"),
        (["--psi", "1", "-o", "card.doc"], "format must be one of"),
        ([], "exactly one notion must be given"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(run, words, sentence):
    code, _, err = run("card", *words)
    assert code == 2
    assert sentence in err


def test_a_card_of_a_run_promises_what_its_sampling_allows(run):
    flags = ["card", "--noise-multiplier", "2", "--sampling-rate", "0.1", "--steps", "2", "--format", "json"]
    code, out, _ = run(*flags, "--sampling", "without-replacement")
    event = psidp.DPSGD(2.0, 0.1, 2, sampling="without-replacement")
    assert code == 0
    assert Card.from_json(out).guarantee == psidp.account(event).guarantee(1e-10)
    assert Card.from_json(run(*flags, "--sampling", "Poisson")[1]).guarantee.adjacency == "add-remove"
    replaced = Card.from_json(run(*flags, "--adjacency", "replace-one")[1])
    assert replaced.guarantee == psidp.account(psidp.DPSGD(2.0, 0.1, 2, adjacency="replace-one")).guarantee(1e-10)
    code, _, err = run(*flags, "--sampling", "without-replacement", "--adjacency", "add-remove")
    assert code == 2
    assert 'sampling="without-replacement" is accounted for adjacency="replace-one", got adjacency="add-remove"' in err
    code, _, err = run(*flags, "--sampling", "shuffle")
    assert code == 2
    assert "A shuffled loader is neither" in err


def test_the_card_says_how_many_scores_an_audit_had_and_where_to_read_it(run, tmp_path):
    rng = np.random.default_rng(1)
    result = psidp.audit(rng.normal(1.0, 1.0, 300), rng.normal(0.0, 1.0, 200), seed=1)
    made = card(psidp.Guarantee(1.0), audit=result)
    assert (made.audit.n_in, made.audit.n_out) == (300, 200)
    assert "300 scores with and 200 without the person" in to_markdown(made)
    (tmp_path / "audit.json").write_text(json.dumps(result.to_dict()))
    flags = ["card", "--psi", "1", "--audit", str(tmp_path / "audit.json"), "--audit-link", "https://example.org/audit"]
    code, out, _ = run(*flags, "--format", "json")
    told = Card.from_json(out)
    assert (code, told.audit.n_in, told.audit.link) == (0, 300, "https://example.org/audit")
    assert "| audit, to read | " in to_markdown(told)
    assert Card.from_json(run(*shlex.split(told.to_dict()["made"]["command"])[1:], "--format", "json")[1]) == told
    included = rng.random(200) < 0.5
    one = card(psidp.Guarantee(1.0), audit=psidp.audit_one_run(included, rng.normal(included, 1.0)))
    assert "200 canaries" in to_markdown(one)
    assert "n_in" not in one.to_dict()["audit"]


@pytest.mark.parametrize("said", [{"audit": 3}, {"mechanism": "noise"}, {"scope": "all"}])
def test_a_card_is_made_of_its_parts_and_nothing_else(said):
    with pytest.raises(TypeError, match=r"a card's (audit|mechanism|scope) must be"):
        card(psidp.Guarantee(1.0), **said)
    with pytest.raises(TypeError, match=r"a card's guarantee must be a Guarantee, got 1\.0"):
        card(1.0)


def test_audits_refuse_nonsense():
    with pytest.raises(ValueError, match="psi_upper must be at least"):
        Audited(1.0, 0.5)
    with pytest.raises(ValueError, match="confidence must be in"):
        Audited(1.0, confidence=1.0)


def test_a_cube_and_an_answer_have_cards_that_say_what_was_published_and_whose_bound_it_is():
    rows = {"who": [1, 1, 2, 3] * 50, "ward": ["A", "B", "A", "A"] * 50}
    curator = psidp.Curator(pa.table(rows), "who", protects="patient")
    cube = curator.cube({"ward": ["A", "B"]}, ["ward"], contribution=4).release(psi=0.5)
    made = psidp.card(cube, date="2026-01-31")
    assert made.guarantee == cube.guarantee
    assert made.title == "count in 1 table of ward"
    assert made.scope.contribution_bound.startswith("one patient counts 4 rows at most; where")
    assert psidp.Card.from_json(made.to_json()) == made
    answer = curator.ask(psidp.ask.count(), by="ward", groups=["A", "B"]).release(psi=0.5)
    made = psidp.card(answer, title="Visits").scope.contribution_bound
    said = "count: one patient adds at most the worth of 1 row, over all groups, combined as the square root of the "
    assert made == f"{said}sum of squares"
    alone = psidp.Curator(pa.table(rows), None).ask(psidp.ask.count()).release(psi=0.5)
    assert psidp.card(alone).scope.contribution_bound == "every row is one record"


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (psidp.BandMF(1.0, 0.01, 2000, 8), "correlated noise, cyclic poisson sampling: 8 bands"),
        (psidp.BandMF(1.0, 0.01, 2000, 8, adjacency="zero-out"), "8 bands, 2,000 steps at rate 0.01"),
        (psidp.FixedOrder(4.0, 4, 2000), "correlated noise in a fixed order: 4 epochs, 2,000 steps"),
    ],
)
def test_a_run_with_correlated_noise_says_its_kind_and_its_neighbours(run, said):
    made = card(run)
    page = to_markdown(made)
    assert said in page
    assert run.adjacency in page
    assert ("blanked" in page) == (run.adjacency == "zero-out")
    assert Card.from_json(made.to_json()) == made
