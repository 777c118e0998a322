"""Carbon intensity and prices from files: the public ones, and what is wrong with others."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from tests.datasets import data

from bough.core.series import Series
from bough.errors import InputError
from bough.sim.supply_files import What, read_supply


def test_a_number_holds_always() -> None:
    assert read_supply("420.5", "carbon") == Series((420.5,))


def test_hours_of_a_day(tmp_path: Path) -> None:
    """Units, gaps, order, what is below nothing; gzipped or not."""
    text = "Datetime (UTC),Price (EUR/MWh)\n" + "\n".join(
        f"2023-01-01 {hour:02}:00:00+00:00,{price}"
        for hour, price in ((2, 300), (0, 100), (1, 200), (5, -40))
    )
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.csv", "b.csv.gz"):
        found = read_supply(str(tmp_path / name), "price")
        assert found == Series((0.1, 0.2, 0.3, 0.3, 0.3, 0.0), 3600.0)


def test_our_own_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("seconds,grams_per_kwh\n0,100\n900,200\n1800,300\n")
    assert read_supply(str(tmp_path / "a.csv"), "carbon") == Series((100.0, 200.0, 300.0), 900.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("seconds,watts\n0,1\n", "no column of carbon intensity"),
        ("carbon\n1\n", "no column of a moment"),
        ("seconds,carbon\n", "has no rows"),
        ("seconds,carbon\n0,1\nx,2\n", ":3: is no moment"),
        ("seconds,carbon\n0,nan\n", "not finite"),
        ("seconds,carbon\n0,1\n0,2\n", "the same moment"),
        ("seconds,carbon\n0,1\n1,2\n2,3\n900000,3\n", "a gap larger than itself"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_supply(str(file), "carbon")
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["-1", "nan", "inf"])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="0 or more"):
        read_supply(text, "carbon")
    with pytest.raises(InputError, match="no such file"):
        read_supply("missing.csv", "price")


@pytest.mark.data
@pytest.mark.parametrize(
    ("path", "what", "hours", "mean"),
    [
        ("carboncast/CISO_direct_emissions.csv.gz", "carbon", 17544, 196.82),
        ("carboncast/PL_lifecycle_emissions.csv.gz", "carbon", 17544, 674.06),
        ("dc-rl-eia/ERCO_NG_avgCI.csv.gz", "carbon", 8760, 347.20),
        ("prices/ES_electricity_prices_2023.csv.gz", "price", 8760, 0.09387),
        ("prices/US-CAL-CISO_electricity_prices_2023.csv.gz", "price", 8760, 0.06163),
    ],
)
def test_the_public_files(path: str, what: What, hours: int, mean: float) -> None:
    """Hours, as their folder's page counts them, and a mean anybody can take with awk."""
    found = read_supply(str(data(path)), what)
    assert len(found.values) == hours
    assert found.step_seconds == 3600.0
    assert sum(found.values) / hours == pytest.approx(mean, rel=1e-4)
