"""An answer as a workbook."""

import psidp
from psidp import ask


def test_an_answer_is_a_workbook(tmp_path):
    import pandas

    frame = pandas.DataFrame({"patient": range(100), "ward": ["A", "B"] * 50})
    answer = psidp.Curator(frame, unit="patient").ask(ask.count(), by="ward", groups=["A", "B"]).release(psi=1.0)
    answer.excel(tmp_path / "wards.xlsx")
    import openpyxl

    assert openpyxl.load_workbook(tmp_path / "wards.xlsx").active.max_row >= 3
