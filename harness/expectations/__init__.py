"""What is held against a file system: documents, practice, a contract, another kernel or target."""
