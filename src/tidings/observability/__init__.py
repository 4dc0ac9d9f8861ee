"""Typed events, metrics and logs. Sinks only listen.

events: one class per event.
log: the log sink, JSON or text.
metrics: Prometheus metrics.
counters: which counters and timings an event adds to (pure).
statsd: the StatsD sink.
otel: the OpenTelemetry sink.
memory_usage: CPU and memory use of this process, and its memory limit.
"""
