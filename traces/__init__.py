"""Recording, storing, reading and diagnosing runs.

Importing this package loads neither DuckDB nor the OpenTelemetry SDK: `traces.recording` needs the SDK,
`traces.store` needs DuckDB, and the functions of `traces.reading` import the store when they are called.
"""
