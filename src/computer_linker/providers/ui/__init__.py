"""Seeing and using the controls of applications: routes, selectors, outlines, aims, acts and what came of them."""
