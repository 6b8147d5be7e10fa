"""What is made from the store: tables, HTML, the explanation of a finding.

Reading order: `explanation` with `epochs`, `block_content` and `comparison`, shown by `explanation_text`; `grid`, shown
by `table` and `page`. Nothing here reaches a verdict.
"""
