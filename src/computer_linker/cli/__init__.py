"""The command line: for the person whose computer this is."""
