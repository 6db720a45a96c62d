"""One HTML page about a fitted model: `consilience.report`; and its charts one by one: `consilience.chart`.

The package is not called `report`: a module of that name would take the place of the function `consilience.report`.

`subject` holds what the report is about, and `content` what items look like. `overview`, `answers`, `confusions`,
`workers`, `items`, `sequences` and `changes` work out what is shown: sums over the data, and a few examples. `charts`
draws, `page` fills the template, and `write` does it all. `one_chart` draws a single one of the charts.
"""
