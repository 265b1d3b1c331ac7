"""The command line. `main` is the table of contents; each command is one file, imported when it is used."""
