"""Commands: run one and wait, or start one and talk to it."""
