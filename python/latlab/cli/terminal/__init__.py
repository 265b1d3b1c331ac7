"""How the command line looks: pure functions from runs, findings and plans to lines of text, and the two streams."""
