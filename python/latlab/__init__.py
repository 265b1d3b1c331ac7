"""latlab."""
