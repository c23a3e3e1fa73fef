"""The Linux backends."""
