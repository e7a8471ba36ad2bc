"""Grafana's dashboards of examples/monitoring, written from a short description of each.

python -m tools.dashboards            rewrites examples/monitoring
python -m tools.dashboards --check    says what has drifted
"""
