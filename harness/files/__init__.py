"""Files that commands read and write: results, temporary folders, caches, and their places."""
