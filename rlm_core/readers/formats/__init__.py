"""One module per format, each with `read(path, out)`; see `rlm_core.readers.output`."""
