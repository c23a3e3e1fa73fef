"""The accessibility facet on AT-SPI 2, directly over D-Bus."""
