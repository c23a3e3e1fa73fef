"""`computer-linker watch`: a full-screen view of what clients do, with the owner's acts on keys. Loaded on first use."""
