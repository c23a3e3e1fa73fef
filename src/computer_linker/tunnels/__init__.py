"""Ways to reach this computer from elsewhere: one file a provider, watched by one supervisor."""
