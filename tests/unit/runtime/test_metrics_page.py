from tools.metrics_page import PAGE, render


def test_the_reference_page_is_what_the_table_says() -> None:
    assert PAGE.read_text() == render(), "run `make generate`"
