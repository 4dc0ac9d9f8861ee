"""Alerts: the engine's own problems, raised once and resolved automatically.

alert_changes: decides which alerts are new, ongoing or resolved (pure).
evaluator: evaluates the rules every 15 seconds, raises and resolves alerts, prunes old ones.
measurements: reads the values that the rules compare, with bounded statements.
prometheus_rules: the same rules as a Prometheus rule file.
rules: the alert rules: threshold (settings table [alerts]), hold time and severity.
service: lists, shows and acknowledges alerts.
"""
