"""Another machine as a computer: every facet call goes over a link, and that machine has the last word."""
