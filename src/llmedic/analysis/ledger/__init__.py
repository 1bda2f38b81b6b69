"""The memory ledger: where every GiB goes, for a model, a card, an engine release and its flags."""
