"""The result store, and what is made from it: tables, HTML, the explanation of a finding.

Reading order: `records` (what the harness hands over), `store`; `explanation` with `epochs`, `block_content` and
`comparison`, shown by `explanation_text`; `grid`, shown by `table` and `page`. Nothing here reaches a verdict.
"""
