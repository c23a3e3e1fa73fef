"""The desktop portals: remote control and screen capture that the person at the machine allows."""
