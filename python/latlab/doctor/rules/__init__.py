"""One rule a file, of the rule's name; the order is in `latlab.doctor`."""
