"""A made-up clinic: patients, their visits, wards and diagnoses. Nobody in it is real."""

import csv
import datetime
from pathlib import Path

import numpy as np

__all__ = ["DIAGNOSES", "FIRST_WEEK", "WARDS", "WEEKS", "visits", "write_visits"]

WARDS = ("cardiology", "geriatrics", "maternity", "oncology", "paediatrics", "surgery")
DIAGNOSES = ("asthma", "back pain", "diabetes", "fracture", "hypertension", "influenza", "migraine", "pneumonia")
PATIENTS = 1_500
FIRST_WEEK, WEEKS = datetime.date(2024, 12, 30), 52
Rows = list[tuple[str, str, str, int, float | None, str]]


def visits(seed: int = 2026) -> Rows:
    """patient_id, ward, diagnosis, age, cost and day of loading of a few thousand visits; the same for the same seed.

    Most patients come once or twice, some a dozen times and to several wards; a few have a diagnosis nobody else has;
    some costs are missing.
    """
    dice, days = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    rows: Rows = []
    for number in range(PATIENTS):
        home, age = int(dice.integers(len(WARDS))), int(np.clip(dice.normal(52, 21), 0, 101))
        rare = number % 300 == 7
        for _ in range(1 + int(dice.poisson(0.9)) + (int(dice.integers(8, 14)) if number % 40 == 3 else 0)):
            ward = WARDS[home] if dice.random() < 0.7 else WARDS[int(dice.integers(len(WARDS)))]
            diagnosis = f"rare syndrome {number}" if rare else DIAGNOSES[int(dice.integers(len(DIAGNOSES)))]
            cost = None if dice.random() < 0.02 else round(float(dice.gamma(1.6, 900.0)), 2)
            loaded = FIRST_WEEK + datetime.timedelta(days=int(days.integers(7 * WEEKS)))
            rows.append((f"P{number:04d}", ward, diagnosis, age, cost, loaded.isoformat()))
    return rows


def write_visits(folder: Path) -> tuple[Path, int]:
    """visits.csv and the public wards.csv in a folder; the first's path and its number of rows."""
    rows = visits()
    path = folder / "visits.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("patient_id", "ward", "diagnosis", "age", "cost", "loaded_at"))
        writer.writerows(rows)
    (folder / "wards.csv").write_text("\n".join(("ward", *WARDS, "quarantine")) + "\n", encoding="utf-8")
    return path, len(rows)
