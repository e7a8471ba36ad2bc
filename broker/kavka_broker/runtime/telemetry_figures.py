"""The figures of what clients push, of which there may be thousands: in slices."""

from kavka_broker.loop.slices import Cost, Work
from kavka_broker.runtime.partition_figures import Sample
from kavka_broker.telemetry.client_metrics import ClientMetrics


def telemetry_samples(metrics: ClientMetrics) -> Work[list[Sample]]:
    metrics.expire()
    sent, dropped = (0, 0) if metrics.forward is None else (metrics.forward.sent_total, metrics.forward.dropped_total)
    found: list[Sample] = [
        ("kavka_telemetry_instances", (), len(metrics.instances)),
        ("kafka_server_client_metrics_instance_count", (), len(metrics.instances)),
        ("kafka_server_client_metrics_plugin_export_count", (), sent),
        ("kafka_server_client_metrics_plugin_error_count", (), dropped),
        ("kavka_telemetry_values_omitted_total", (), metrics.series.omitted_total),
        ("kavka_telemetry_instances_displaced_total", (), metrics.instances.displaced_total),
        *(("kavka_telemetry_asks_total", (result,), count) for result, count in sorted(metrics.asks.items())),
        *(("kavka_telemetry_pushes_total", (result,), count) for result, count in sorted(metrics.results.items())),
    ]
    if metrics.forward is not None:
        found.append(("kavka_telemetry_forwarded_total", ("sent",), sent))
        found.append(("kavka_telemetry_forwarded_total", ("dropped",), dropped))
    cost = Cost()
    for (client, metric, is_level), value in list(metrics.series):
        name = "kavka_client_telemetry_level" if is_level else "kavka_client_telemetry_flow_total"
        found.append((name, (client.client_id, client.software, metric), value))
        if cost.add(1):
            yield
    return found
