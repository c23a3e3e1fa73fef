"""The accessibility facet on AT-SPI 2, straight over D-Bus."""
