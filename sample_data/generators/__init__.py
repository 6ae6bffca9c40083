"""The corpora of sample_data, one module each: seeded, from the standard library alone, no personal names."""
