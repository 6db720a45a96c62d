"""Documents about results: their parts, what they say, and how terminal, HTML, JSON and notebook show them.

==================  ================================================================================
`document.py`       `Document`, and the parts that it may have
`overview.py`       the short document on a result: what terminals and notebooks show
`page.py`           the long one, the report: its first screen, and `SECTIONS` in their order
`view.py`           `View`: a result with what several sections need of it
`workers.py`        sections of the page, as in `items.py`, `sequences.py`, `networks.py`, `tags.py` and
                    `estimates.py`
`charts.py`         charts as SVG
`terminal.py`       documents as text and as JSON
`html.py`           documents as a page, and in notebooks; `templates/` are its forms
==================  ================================================================================
"""
