from tools.audit_tables_page import PAGE, page


def test_the_page_has_not_drifted() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
