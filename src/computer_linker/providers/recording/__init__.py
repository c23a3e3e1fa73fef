"""Recordings of the screen: masked frames over a bounded time, as a video where ffmpeg is installed, and as a contact sheet."""
