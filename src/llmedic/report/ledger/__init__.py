"""The ledger shown: for a person at a terminal, for a ticket, as a chart and for a program."""
