"""How long a program takes on another machine, or with one thing changed: its ledger, scaled by figures."""
