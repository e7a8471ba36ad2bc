import json

from bench import report
from bench.measure import CPU_PER_GB, RATE, THROUGHPUT, Measure, compare
from bench.report import Layout

LAYOUT = Layout("Produce", "produce", (RATE, THROUGHPUT, CPU_PER_GB))


def produced(broker: str, repetition: int, rate: float, cpu: float) -> Measure:
    figures = {"records_per_second": rate, "megabytes_per_second": rate / 1e4, "cpu_seconds_per_gb": cpu}
    return Measure("produce", "100 B", broker, repetition, figures, others_cores=0.25)


MEASURES = [
    produced("kavka", 0, 2_000_000.0, 4.0),
    produced("kafka", 0, 1_000_000.0, 3.0),
    produced("kavka", 1, 3_000_000.0, 5.0),
    produced("kafka", 1, 1_000_000.0, 2.0),
]


def test_a_table_has_median_and_ends_of_both_and_the_lead() -> None:
    header, row = report.table(MEASURES, LAYOUT)
    assert header[:4] == ["case", "k records/s Kavka", "Kafka", "lead"]
    assert row == [
        "100 B",
        "2500 (2000-3000)",
        "1000",
        "2.50",
        "250 (200-300)",
        "100",
        "4.50 (4.00-5.00)",
        "2.50 (2.00-3.00)",
        "0.56",
        "0.25",
    ]


def test_what_one_broker_alone_did_has_no_lead() -> None:
    comparison = compare(MEASURES[:1], "produce", "100 B", RATE)
    assert comparison.kafka is None
    assert comparison.lead is None


def test_the_summary_counts_the_leads_and_names_where_kavka_is_behind() -> None:
    counted, behind = report.summary(MEASURES).splitlines()
    assert counted == "Kavka is level or ahead in 1 of 2 figures."
    assert behind == "- behind: produce, 100 B, broker CPU s/GB: 0.56"


def test_a_section_that_was_not_measured_has_no_table() -> None:
    assert report.table(MEASURES, Layout("Consume", "consume", (RATE,))) == []
    assert "Consume" not in report.markdown(MEASURES, {"cores": 2})


def test_markdown_and_text_show_the_same_cells() -> None:
    for shown in (report.markdown(MEASURES, {"cores": 2}), report.text(MEASURES)):
        assert "2500 (2000-3000)" in shown
        assert "0.56" in shown


def test_json_keeps_every_repetition() -> None:
    read = json.loads(report.as_json(MEASURES, {"cores": 2}))
    assert read["environment"] == {"cores": 2}
    assert [measure["repetition"] for measure in read["measures"]] == [0, 0, 1, 1]
    assert read["measures"][0]["figures"]["records_per_second"] == 2_000_000.0
