import pytest

from kavka_operator.api.quantity import parse, spell


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        (1500, 1500),
        ("1500", 1500),
        ("10Mi", 10 * 1024**2),
        ("10M", 10_000_000),
        ("1.5Gi", 1_610_612_736),
        ("0.1Gi", 107_374_182),
        ("5k", 5000),
        ("1Ti", 1024**4),
        ("1Pi", 1024**5),
        ("1e6", 1_000_000),
        ("1.5E3", 1500),
        (2.0, 2),
    ],
)
def test_an_amount_is_read_as_kubernetes_writes_it(written: object, amount: int) -> None:
    assert parse(written) == amount


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("10 MiB", '"10 MiB" has a space; write "10Mi"'),
        ("10 Mi", '"10 Mi" has a space; write "10Mi"'),
        ("10MiB", '"10MiB" has a unit ("MiB") that is not known; write "10Mi"'),
        ("10MB", '"10MB" has a unit ("MB") that is not known; write "10Mi" (1024) or "10M" (1000)'),
        ("10mb/s", '"10mb/s" has a unit ("mb/s") that is not known; write "10Mi" (1024) or "10M" (1000)'),
        ("5K", '"5K" has a unit ("K") that is not known; write "5k"'),
        ("500m", '"500m" would be thousandths, as Kubernetes writes them; write "500M" (millions) or a whole number'),
        ("a lot", '"a lot" is not an amount; write a number such as 10Mi'),
        ("", '"" is not an amount; write a number such as 10Mi'),
        ("-1", '"-1" is not an amount; write a number such as 10Mi'),
        (0, "0 is out of range; write an amount from 1 to 9223372036854775806"),
        ("0.0000001k", "0.0000001k is out of range; write an amount from 1 to 9223372036854775806"),
        ("99999999Ti", "99999999Ti is out of range; write an amount from 1 to 9223372036854775806"),
        ("1e99", "1e99 is out of range; write an amount from 1 to 9223372036854775806"),
        ("1e+6", '"1e+6" is not an amount; write a number such as 10Mi'),
        (True, "true is not an amount; write a number such as 10Mi"),
        (1.5, "1.5 is not an amount; write a number such as 10Mi"),
        (None, "None is not an amount; write a number such as 10Mi"),
        ("9" * 40, '"99999999999999999999999999999999" is not an amount; write a number such as 10Mi'),
    ],
)
def test_refused_with_the_spelling_that_would_do(written: object, complaint: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole text is compared
        parse(written)
    assert str(refused.value) == complaint


@pytest.mark.parametrize(
    ("amount", "spelled"), [(1024**2, "1Mi"), (1_500_000, "1500k"), (7, "7"), (0, "0"), (2.5, "2.5")]
)
def test_spelled_exactly_and_short(amount: float, spelled: str) -> None:
    assert spell(amount) == spelled
