"""Commands that make, run, merge and compare gates, and bisect with them."""
