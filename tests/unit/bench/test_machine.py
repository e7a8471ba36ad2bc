import os
import subprocess
import sys

from bench import machine
from bench.machine import TICKS_PER_SECOND, Cpu


def test_stat_of_a_process_whose_name_has_spaces_and_brackets() -> None:
    fields = ["S", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "100", "50", "30", "20", "0", "0"]
    seconds = machine.parse_stat(f"4711 (a ) b) {' '.join(fields)}\n")
    assert seconds == Cpu(130 / TICKS_PER_SECOND, 70 / TICKS_PER_SECOND)


def test_busy_leaves_idle_and_iowait_out() -> None:
    text = "cpu  10 20 30 4000 5000 60 70 80 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"
    assert machine.parse_busy(text) == (10 + 20 + 30 + 60 + 70 + 80) / TICKS_PER_SECOND


def test_cpu_times_add_and_subtract() -> None:
    assert Cpu(3.0, 2.0) - Cpu(1.0, 1.0) + Cpu(0.5, 0.5) == Cpu(2.5, 1.5)
    assert Cpu(3.0, 2.0).total == 5.0


def test_a_process_counts_with_its_children() -> None:
    words = "print('here', flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n", "it has taken what it needs by then"
        assert child.pid in machine.children_of(os.getpid())
        assert machine.rss_bytes(os.getpid()) > machine.rss_bytes(child.pid) > 0
    finally:
        child.communicate(b"\n")


def test_a_meter_sees_the_work_of_what_it_watches() -> None:
    with machine.Meter(os.getpid()) as meter:
        before = machine.cpu_of(os.getpid()).total
        while machine.cpu_of(os.getpid()).total - before < 3 / TICKS_PER_SECOND:
            pass
    assert round(meter.cost.broker.total * TICKS_PER_SECOND) >= 3
    assert meter.cost.wall_seconds > 0
