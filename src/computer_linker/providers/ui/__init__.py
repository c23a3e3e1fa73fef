"""Reading and operating the controls of applications: routes, selectors, outlines, aims, acts and their effects."""
