"""psidp ledger answer: whatever was released under a key is printed again from the ledger alone."""


def test_answer_prints_what_the_release_printed(run, tmp_path):
    (tmp_path / "visits.csv").write_text("patient,ward,came\n1,A,2026-01-05\n2,B,2026-01-06\n")
    book, paid = tmp_path / "ledger.db", ["--ledger", tmp_path / "ledger.db", "--budget", "survey", "--psi", 0.5]
    run("ledger", "open", book, "survey", "--psi", 2, "--unit", "patient", "--purpose", "2026")
    why = ["--unit", "patient", "--purpose", "a number"]
    rows = [tmp_path / "visits.csv", "--unit-column", "patient", *paid]
    period = ["--name", "visits", "--every", "week", "--since", "2026-01-05", "--periods", 1, "--arrived", "came"]
    for key, command in {
        "table": ["release", "table", *rows, "--count", "--by", "ward", "--groups", "A,B", "--retry-key", "table"],
        "cube": ["release", "cube", *rows, "--column", "ward:A,B", "--up-to", 1, "--retry-key", "cube"],
        "number": ["release", "value", 7, "--sensitivity", 1, *paid, *why, "--retry-key", "number"],
        "stream visits: period 1": ["stream", "publish", *rows, *period, "--at-most", 1, "--count"],
    }.items():
        if command[0] == "stream":
            assert run("stream", "open", *command[2:])[0] == 0
        code, out, err = run(*command)
        assert (code, bool(out)) == (0, True), err
        assert run("ledger", "answer", book, key)[:2] == (0, out)
