"""Use cases: they join sources, judgement and reports, and know nothing of the command line."""
