"""What the process asks of the operating system."""

import resource

from kavka_broker.runtime.process import allow_open_files


def test_as_many_files_may_be_open_as_the_system_allows() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = before
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024) - 1, hard))
        assert allow_open_files() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        assert allow_open_files() == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
