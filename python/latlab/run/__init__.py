"""Runs: their files, their model, and the conducting of one."""
