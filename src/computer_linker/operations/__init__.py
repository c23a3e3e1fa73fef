"""One file an operation: file.read is operations/file/read.py, and the tree of this folder is the catalogue."""
