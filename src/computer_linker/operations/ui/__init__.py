"""The controls of applications as trees."""
