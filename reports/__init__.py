"""The result store, and what is drawn from it: tables, HTML, the explanation of a finding.

Reading order: `records` (what the harness hands over), `store`; `explanation` with `epochs`, `block_content` and
`comparison`, drawn by `explanation_text`; `grid`, drawn by `table` and `page`. Nothing here comes to a verdict.
"""
