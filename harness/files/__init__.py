"""Files that commands read and write: results, folders for a while, what is kept, and where all of it is."""
