"""The JSON API: the library's numbers and the library's refusals, one error shape, nothing that falls over."""

import asyncio
import json
import sys

import httpx
import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

import psidp
from psidp.cli import explore
from psidp.errors import MissingExtraError
from psidp.present.card import Card
from psidp.present.web.app import create_app
from psidp.present.web.middleware import LARGEST_BODY, POLICY
from psidp.present.web.worker import Worker

HOST = "http://127.0.0.1:8347"
APP = create_app(longest=600.0)
"""One application for all, and with it one worker, which a busy machine may keep waiting."""
HASTY = create_app(longest=1.5)
"""One that gives up soon, where it may: on what has no end, and on whatever chance asks."""
RUN = {"noise_multiplier": 1.0, "sampling_rate": 0.01, "steps": 1000}


def send(method, path, token=None, base=HOST, app=APP, **request):
    async def once():
        asked = app if token is None else create_app(token)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(asked), base_url=base) as client:
            return await client.request(method, path, **request)

    return asyncio.run(once())


def post(path, body, **more):
    return send("POST", f"/api/{path}", json=body, **more)


def refused(answer, status=422):
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    assert set(answer.json()["error"]) == {"sentence"}
    return answer.json()["error"]["sentence"]


def test_explain_answers_as_the_command_line_does():
    answer = post("explain", {"epsilon": 1, "delta": 1e-5, "unit": "patient"}).json()
    g = psidp.Guarantee.gaussian(epsilon=1, delta=1e-5, unit="patient")
    assert answer["guarantee"] == g.to_dict()
    assert answer["statements"][0] == {"theory": "sensitivity index", "quantity": "psi = Delta/sigma", "value": g.psi}
    assert "patient" in answer["sentences"][0]


def test_calibrate_answers_sigma():
    answer = post("calibrate", {"sensitivity": 2, "psi": 0.5}).json()
    assert answer["sigma"] == 4.0


def test_a_card_comes_in_each_format():
    values = post("card", {"sensitivity": 1, "sigma": 2, "title": "<b>"}).json()["card"]
    assert Card.from_json(json.dumps(values)).guarantee.psi == 0.5
    assert "&lt;b&gt;" in post("card", {"psi": 1, "title": "<b>", "format": "html"}).json()["text"]
    assert post("card", {"psi": 1, "sensitivity": 3, "format": "md"}).json()["text"].startswith("# Privacy card")


def test_account_answers_what_python_answers():
    answer = post("account", {"runs": [RUN, RUN], "delta": 1e-6, "unit": "patient"})
    curve = psidp.account([psidp.DPSGD(1.0, 0.01, 1000, unit="patient")] * 2)
    epsilon = curve.epsilon(1e-6)
    got = answer.json()
    assert (got["epsilon"]["lower"], got["epsilon"]["upper"]) == (epsilon.lower, epsilon.upper)
    assert got["guarantee"] == curve.guarantee(1e-10).to_dict()
    assert got["regret"]["upper"] == curve.regret(1e-10).upper


def test_calibrate_answers_noise_for_a_run():
    asked = {"sampling_rate": 0.01, "steps": 1000, "epsilon": 2, "delta": 1e-5}
    want = psidp.calibrate(sampling_rate=0.01, steps=1000, epsilon=2.0, delta=1e-5)
    assert post("calibrate", asked).json()["noise_multiplier"] == want


def test_account_and_calibrate_know_correlated_noise():
    made = post("account", {"runs": [RUN | {"bands": 8}], "delta": 1e-6}).json()
    assert made["epsilon"]["upper"] == psidp.account(psidp.BandMF(1.0, 0.01, 1000, 8)).epsilon(1e-6).upper
    fixed = post("account", {"runs": [{"noise_multiplier": 4.0, "epochs": 4, "order": "fixed"}], "kappa": 0.0}).json()
    assert fixed["guarantee"] == {"psi": 0.5, "kappa": 0.0, "adjacency": "zero-out", "unit": "record"}
    asked = {"epsilon": 2.0, "delta": 1e-6}
    noise = post("calibrate", asked | {"sampling_rate": 0.01, "steps": 100, "bands": 8}).json()["noise_multiplier"]
    assert noise == psidp.calibrate(**asked, sampling_rate=0.01, steps=100, bands=8)
    assert "bands" in refused(post("account", {"runs": [RUN | {"bands": 101}]}))


def test_an_account_without_end_is_given_up_and_the_next_one_is_answered(monkeypatch):
    made = []
    monkeypatch.setattr("psidp.present.web.app.Worker", lambda longest: made.append(Worker(longest)) or made[-1])
    app, hopeless = create_app(longest=1.5), RUN | {"noise_multiplier": 0.01, "sampling_rate": 0.5}
    assert "takes more than 1.5 seconds here" in refused(post("account", {"runs": [hopeless]}, app=app))
    made[0].longest = 600.0
    assert post("account", {"runs": [RUN]}, app=app).status_code == 200


@pytest.mark.parametrize(
    ("question", "asked", "words"),
    [
        ("account", {"runs": [RUN | {"sampling_rate": 2}]}, "sampling_rate (chance of a record to be in a batch)"),
        ("account", {"runs": [RUN | {"steps": 1.5}]}, "steps (number of noisy steps) must be a whole number"),
        ("account", {"runs": [RUN | {"sampling": "shuffle"}]}, "A shuffled loader is neither"),
        ("account", {"runs": []}, "runs"),
        ("account", {"runs": [RUN] * 21}, "runs"),
        ("account", {"runs": [RUN], "kappa": 0}, "kappa (probability of outright failure)"),
        ("calibrate", {"psi": 1}, "calibrate needs sensitivity for a query"),
        ("calibrate", {"psi": 1, "sensitivity": 1, "kappa": 0.1}, "belongs to a run"),
        ("calibrate", {"steps": 10, "psi": 1}, "a run needs sampling_rate, or batch_size and dataset_size"),
        ("calibrate", {"steps": 10, "sampling_rate": 0.1, "auc": 0.7}, "got auc"),
        ("calibrate", {"steps": 10, "epochs": 1, "sampling_rate": 0.1}, "give steps or epochs, not both"),
    ],
)
def test_runs_are_refused_by_sentence(question, asked, words):
    assert words in refused(post(question, asked))


def test_audit_answers_what_python_answers():
    rng = np.random.default_rng(4)
    inside, outside = rng.normal(1, 1, 500), rng.normal(0, 1, 500)
    answer = post(
        "audit", {"in_scores": inside.tolist(), "out_scores": outside.tolist(), "claimed_psi": 0.2, "seed": 1}
    )
    want = psidp.audit(inside, outside, claimed=psidp.Guarantee(0.2), seed=1)
    assert answer.json()["psi"] == want.psi
    assert answer.json()["refuted"] is True


def test_audit_bounds_its_work_and_refuses_by_sentence():
    refused(post("audit", {"in_scores": [0] * 50_001, "out_scores": [0]}))
    assert "in_scores" in refused(post("audit", {"in_scores": [], "out_scores": [0]}))
    assert "confidence" in refused(post("audit", {"in_scores": [1, 2], "out_scores": [0, 1], "confidence": 2}))


def test_infinity_is_a_string():
    values = post("card", {"psi": 1, "kappa": 0.01}).json()["card"]
    assert values["derived"]["epsilon_at_delta"][0]["epsilon"] == "inf"


@pytest.mark.parametrize("path", ["explain", "calibrate", "card", "account", "audit"])
@pytest.mark.parametrize(
    "body",
    [
        b'{"psi": NaN}',
        b'{"psi": Infinity}',
        b'{"psi": -1}',
        b'{"psi": "1"}',
        b'{"psi": true}',
        b'{"psi": [1]}',
        b'{"psi": 1e999}',
        b'{"psi": ' + b"9" * 400 + b"}",
        b'{"psi": 1, "epsilon": 1}',
        b'{"psi": 1, "unknown": 1}',
        b'{"psi": 1, "adjacency": "both"}',
        b'{"psi": 1, "unit": " "}',
        b'{"psi": 1, "unit": "' + b"x" * 300 + b'"}',
        b"{}",
        b"[]",
        b"null",
        b"",
        b"psi=1",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"psi": ' + b"[" * 20 + b"]" * 20 + b"}",
    ],
    ids=lambda body: body[:24],
)
def test_nonsense_gets_the_one_error_shape(path, body):
    answer = send("POST", f"/api/{path}", content=body, headers={"content-type": "application/json"})
    assert refused(answer, answer.status_code).endswith(".")
    assert answer.status_code in (400, 422)


def test_refusals_are_the_librarys_sentences():
    answer = send("POST", "/api/explain", content=b'{"psi": NaN}', headers={"content-type": "application/json"})
    assert refused(answer).startswith("psi (sensitivity index Delta/sigma) must be in [0, inf), got psi=nan.")
    assert refused(post("explain", {"psi": 1, "auc": 0.7})).startswith("exactly one notion must be given")


def test_a_large_request_is_refused_before_it_is_read_whole():
    answer = send("POST", "/api/explain", content=b" " * (LARGEST_BODY + 1))
    assert "at most" in refused(answer, 413)


def test_unknown_places_and_methods_get_the_one_shape():
    refused(send("GET", "/nothing"), 404)
    refused(send("GET", "/static/../app.py"), 404)
    refused(send("GET", "/static/%2e%2e/%2e%2e/command.py"), 404)
    refused(send("GET", "/api/explain"), 405)


def test_the_page_and_every_answer_carry_a_strict_policy():
    for answer in (send("GET", "/"), send("GET", "/static/js/main.js"), post("explain", {}), send("GET", "/nothing")):
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in POLICY
    page = send("GET", "/").text
    assert "<script>" not in page
    assert " style=" not in page
    assert "onclick" not in page


def test_only_loopback_names_are_answered_without_a_token():
    assert send("GET", "/", base="http://localhost:9").status_code == 200
    assert send("GET", "/", base="http://[::1]:9").status_code == 200
    refused(send("GET", "/", base="http://evil.example"), 403)
    refused(send("GET", "/", base="http://127.0.0.1.evil.example:80"), 403)


def test_another_sites_page_cannot_ask():
    refused(post("explain", {"psi": 1}, headers={"sec-fetch-site": "cross-site"}), 403)
    assert post("explain", {"psi": 1}, headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_with_a_token_nothing_is_answered_without_it():
    base = "http://10.0.0.7:8347"
    refused(send("GET", "/", token="secret", base=base), 401)
    refused(send("GET", "/?token=wrong", token="secret", base=base), 401)
    first = send("GET", "/?token=secret", token="secret", base=base)
    assert first.status_code == 200
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    held = {"cookie": cookie.split(";")[0]}
    assert post("explain", {"psi": 1}, token="secret", base=base, headers=held).status_code == 200
    bearer = {"authorization": "Bearer secret"}
    assert post("explain", {"psi": 1}, token="secret", base=base, headers=bearer).status_code == 200


def test_an_address_that_others_reach_needs_the_flag_and_gets_a_token():
    assert explore.check_host("127.0.0.1", beyond_loopback=False) is None
    with pytest.raises(ValueError, match="--beyond-loopback"):
        explore.check_host("0.0.0.0", beyond_loopback=False)
    assert len(explore.check_host("0.0.0.0", beyond_loopback=True)) >= 32


def test_without_fastapi_the_refusal_names_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'psidp\[web\]'"):
        explore.serve("127.0.0.1", 0, beyond_loopback=False, browser=False)


def test_explore_saves_one_file(tmp_path, monkeypatch, capsys):
    from psidp.cli import main

    target = tmp_path / "explorer.html"
    monkeypatch.setattr(sys, "argv", ["psidp", "explore", "--save", str(target)])
    with pytest.raises(SystemExit) as stop:
        main.main()
    assert stop.value.code == 0
    assert "needs no server" in capsys.readouterr().out
    text = target.read_text()
    assert "import {" not in text
    assert 'src="' not in text


schema = schemathesis.openapi.from_asgi("/api/openapi.json", HASTY, headers={"host": "127.0.0.1"})


@schema.parametrize()
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_the_api_keeps_its_own_description(case):
    answer = case.call(headers={"host": "127.0.0.1"})
    assert answer.status_code < 500
    case.validate_response(answer, excluded_checks=[positive_data_acceptance])  # "exactly one notion" is no schema
    if answer.status_code != 200:
        assert set(answer.json()["error"]) == {"sentence"}


def test_a_run_may_be_said_in_epochs_and_batch_sizes():
    said = {"batch_size": 600, "dataset_size": 60_000, "epochs": 10}
    whole = post("account", {"runs": [{"noise_multiplier": 1.0} | said]}).json()
    assert whole == post("account", {"runs": [{"noise_multiplier": 1.0, "sampling_rate": 0.01, "steps": 1000}]}).json()
    target = {"epsilon": 2.0, "delta": 1e-5}
    one, other = (post("calibrate", run | target).json() for run in (said, {"sampling_rate": 0.01, "steps": 1000}))
    assert one["noise_multiplier"] == other["noise_multiplier"]
