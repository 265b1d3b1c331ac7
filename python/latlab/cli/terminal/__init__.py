"""How the command line looks: functions from runs, findings and plans to lines of text, and the streams."""
