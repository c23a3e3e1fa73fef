"""Another machine as a computer: every facet call goes over a link, and that machine applies its own policy."""
