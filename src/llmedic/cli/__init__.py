"""The command line: one file per command that parses, calls the library, renders and returns an exit code."""
