"""The report: one HTML file with a matrix or a gate's result, and the story of each finding."""
