"""Archives and compressed files: what they contain is unpacked into a folder under names of our own.

One module per kind, each with `read(path, out)`; like the formats they run in a child process.
"""
