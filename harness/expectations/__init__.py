"""What a file system is expected to do, by documents, practice, a contract, or another kernel or target."""
