"""Where a program's wall time goes: the ledger as Python sees it, and what it says in words."""
