"""Ctrl-C before a broker has started, which then has no handler of signals yet."""

import pytest

from kavka_broker import __main__, cli


def test_ctrl_c_while_it_imports_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    with pytest.raises(SystemExit) as ended:
        __main__.main([])
    assert ended.value.code == __main__.INTERRUPTED
