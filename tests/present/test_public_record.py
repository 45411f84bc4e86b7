"""The public record: the registry's entry is valid under its own schema; an evaluation answers each point."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from psidp import Guarantee, Ledger
from psidp.present import evaluation, registry
from psidp.present.card import card
from psidp.present.card.record import Audited, Scope
from psidp.present.spending_bars import stretches

SCHEMA = yaml.safe_load(
    (Path(__file__).parent.parent / "reference" / "deployments_registry" / "deployments-schema.yaml").read_text()
)
JUDGE = jsonschema.Draft7Validator(SCHEMA, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
ANSWERS = {
    "data_curators": ["The clinic", "Its board"],
    "intended_use": 'planning: "beds", nurses # and more',
    "data_product_type": "Summary statistics",
    "data_product_region": "Testland\nand its islands",
    "release_type": "Many releases",
    "data_source_type": "Dynamic",
    "access_type": "Non-interactive",
    "preprocessing_and_hyperparameter_tuning": "none",
    "justification": "yes",
    "registry_authors": ["Ann"],
}


def flags(answers):
    found = []
    for name, value in answers.items():
        for one in [value] if isinstance(value, str) else value:
            found += ["--answer", f"{name}={one}"]
    return found


@pytest.fixture
def report(tmp_path):
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.open(
            "survey", psi=1.0, kappa=1e-6, unit="patient", purpose="the survey", actor="ann", approval_above=0.3
        )
        with ledger.spend("survey", Guarantee(0.2, 1e-9, unit="patient"), purpose="q", actor="bob"):
            pass
        yield ledger.report("survey")


@pytest.mark.parametrize("kappa", [0.0, 1e-6])
def test_the_registrys_entry_is_valid_and_comes_back_from_yaml_as_it_was(report, kappa):
    made = registry.deployment(card(Guarantee(1.0, kappa, unit="patient"), title="Visits, 2026"), ANSWERS, report)
    text = registry.to_yaml(made)
    assert yaml.safe_load(text) == made
    assert not list(JUDGE.iter_errors(yaml.safe_load(text)))
    assert made["url_slug"] == "visits_2026"
    loss = made["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "patient"
    assert ("rho" in loss["privacy_parameters"]) == (kappa == 0.0)
    assert "psi 0.2" in made["deployment"]["deployment_model"]["release_type_details"]


def test_every_question_is_a_field_of_the_schema_with_the_same_allowed_values():
    sections = SCHEMA["properties"]["deployment"]["properties"]
    for name, question in registry.QUESTIONS.items():
        field = sections[question.section]["properties"][name]
        allowed = [value for value in field.get("enum", []) if value != "Varies"]
        assert list(question.allowed) == allowed, name
        assert (field.get("type") == "array") == question.several, name


def test_every_required_field_is_filled_or_asked_for_by_name():
    required = SCHEMA["properties"]["deployment"]["properties"]["basic"]["required"]
    known = set(registry.deployment(card(Guarantee(1.0), title="Visits"), ANSWERS)["deployment"]["basic"])
    assert set(required) <= known
    for name in ANSWERS:
        rest = {other: value for other, value in ANSWERS.items() if other != name}
        with pytest.raises(ValueError, match=rf"the registry also asks for {name} \("):
            registry.deployment(card(Guarantee(1.0), title="Visits"), rest)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"data_product_type": "Numbers"}, "must be one of Summary statistics"),
        ({"colour": "blue"}, "must be to one of"),
        ({"intended_use": ["a", "b"]}, "answered once"),
        ({"intended_use": " "}, "said in words"),
    ],
)
def test_an_answer_that_the_registry_does_not_take_is_refused(wrong, why):
    with pytest.raises(ValueError, match=why):
        registry.deployment(card(Guarantee(1.0), title="Visits"), ANSWERS | wrong)


def test_all_that_is_wrong_or_missing_is_asked_for_at_once():
    some = {name: ANSWERS[name] for name in ("data_curators", "justification")}
    wrong = some | {"data_product_type": "Numbers", "access_type": "Both"}
    with pytest.raises(ValueError, match=r"data_product_type .* must be one of Summary statistics") as refusal:
        registry.deployment(card(Guarantee(1.0)), wrong)
    said = str(refusal.value)
    for name in ANSWERS:
        assert (f"{name} (" in said) == (name not in some), name
    assert "title (what was released" in said
    assert "--answers FILE" in said


def test_a_form_is_written_filled_in_and_read(run, tmp_path):
    form, entry = tmp_path / "answers.txt", tmp_path / "registry.yaml"
    words = ("card", "--psi", 1, "--title", "Visits, 2026", "--registry", entry, "--answers", form)
    code, _, err = run(*words)
    assert (code, f"{form} is a form now" in err, entry.exists()) == (2, True, False)
    text = form.read_text()
    for name, question in registry.QUESTIONS.items():
        assert f"# {registry.described(name)}\n{name} =\n" in text
        assert question.asks in text
    assert "# how accuracy was measured, and for whom it is enough\nutility =\n" in text
    assert text.count("\njustification =\n") == 1, "asked once where both ask"
    code, _, err = run(*words)
    assert (code, all(f"{name} (" in err for name in ANSWERS)) == (2, True), "an empty form answers nothing"
    for name, value in ANSWERS.items():
        lines = [value] if isinstance(value, str) else value
        text = text.replace(f"\n{name} =\n", "\n" + "".join(f"{name} = {one.splitlines()[0]}\n" for one in lines))
    form.write_text(text)
    assert run(*words)[0] == 0
    made = yaml.safe_load(entry.read_text())
    assert made["deployment"]["basic"]["data_curators"] == ANSWERS["data_curators"]
    form.write_text(f"{text}\nnonsense\n")
    assert "must read NAME=VALUE, got 'nonsense'" in run(*words)[2]
    assert made["url_slug"] == "visits_2026", "made of the title, not of the file's name"
    assert not list(JUDGE.iter_errors(made))


def test_an_evaluation_lists_requests_and_who_approved_them(report, tmp_path):
    with Ledger(tmp_path / "ledger.db") as ledger:
        asked = ledger.request("survey", Guarantee(0.5, unit="patient"), purpose="q", actor="bob")
        ledger.approve(asked.id, purpose="agreed", actor="ann")
        ledger.pause("survey", person="rob", purpose="has left", actor="ann")
        told = ledger.report("survey")
    points = {p.heading: p for p in evaluation.evaluation(card(told), told)}
    day = told.asked[0].time[:10]
    assert (
        f"Changes: opened on {day} by ann, requested psi 0.5 on {day} by bob, approved request 3 on {day} by ann, "
        f"paused for rob on {day} by ann."
    ) in points["Budget over time"].answer


def test_an_evaluation_answers_each_point_from_card_ledger_and_answers(report):
    made = card(Guarantee(1.0, unit="patient"), title="Visits", audit=Audited(2.0), scope=Scope(covered=("all wards",)))
    points = {p.heading: p for p in evaluation.evaluation(made, report, {"data_collection": "by consent"})}
    for heading, words in {
        "Unit of privacy": "All data of one patient",
        "Privacy parameters": "psi = 1",
        "Trust model and attacker": "central",
        "Clipping and sensitivity": "none was enforced here",
        "Side channels": "exact",
        "What is covered": "all wards",
        "Budget over time": "Spent: psi 0.2",
        "Data collection": "by consent",
        "Audits and tests": "An audit contradicts this promise",
    }.items():
        assert words in points[heading].answer
    assert not points["Utility"].answered
    for write in (evaluation.to_html, evaluation.to_markdown):
        page = write(made, list(points.values()))
        assert "Open: Access to the data" in page
        assert "by consent" in page


def test_the_registry_file_of_the_demos_release_validates_against_the_schema(run, tmp_path):
    assert run("demo", "--folder", tmp_path / "demo")[0] == 0
    files = [
        "--registry",
        tmp_path / "clinic.yaml",
        "--evaluation",
        tmp_path / "clinic.html",
        "-o",
        tmp_path / "card.json",
    ]
    paid = ["card", "--ledger", tmp_path / "demo" / "ledger.db", "--budget", "survey-2026"]
    code, _, err = run(*paid, *files)
    assert (code, "intended_use (" in err, "data_curators (" in err) == (2, True, True)
    code, _, err = run(*paid, "--registry", tmp_path / "d.yaml", "--publisher", "The clinic")
    assert (code, "intended_use (" in err, "data_curators" in err) == (2, True, False), "somebody said who publishes"
    assert not (tmp_path / "card.json").exists()
    code, _, err = run(*paid, *files, *flags(ANSWERS))
    assert code == 0, err
    made = yaml.safe_load((tmp_path / "clinic.yaml").read_text())
    assert not list(JUDGE.iter_errors(made))
    spent = Ledger(tmp_path / "demo" / "ledger.db").report("survey-2026").lifetime
    assert json.loads((tmp_path / "card.json").read_text())["guarantee"]["psi"] == spent.psi
    assert "kappa = 1e-9" in made["deployment"]["privacy_loss"]["privacy_parameters_details"]
    assert "survey-2026" in (tmp_path / "clinic.html").read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--registry", "entry.txt"], "registry must be a .yaml file"),
        (["--evaluation", "page.pdf"], "evaluation must be a .html or .md file"),
        (["--answer", "nonsense"], "must read NAME=VALUE"),
        (["--answer", "colour=blue"], "must be to one of"),
        (["--ledger", "ledger.db"], "given together"),
    ],
)
def test_options_that_cannot_be_are_refused(run, words, why):
    code, _, err = run("card", "--psi", 1, *words)
    assert (code, why in err) == (2, True), err


def test_bars_are_days_months_or_years_and_psi_squared_is_kept():
    days = [(f"20{year}-{month:02}-{day:02}", 0.1) for year in (24, 25) for month in (1, 2, 3) for day in range(1, 29)]
    for few, letters in ((days[:40], 10), (days, 7)):
        found = stretches(few)
        assert {len(name) for name, _ in found} == {letters}
        assert sum(psi**2 for _, psi in found) == pytest.approx(0.01 * len(few))
