"""OTLP, the wire format of OpenTelemetry, read: spans of any instrumentation as spans of a run."""
