"""What a fit found: labels and probabilities, intervals, tables, files.

The records, in the order in which a fit makes them:

===================  ======================  ===============================================  ==========================
record               file                    what it holds                                    who makes it
===================  ======================  ===============================================  ==========================
`Given`              `result.py`             what was fitted, and what was decided about it   `fuse`, then `fit_model`
`Estimates`          `inference/em.py`       how workers answer, and the structure            `_learn`
`IntervalInputs`     `intervals.py`          the estimates that intervals depend on           `gather_inputs`
`Conclusion`         `conclusion.py`         posteriors, left-out posteriors, sums            `conclude`
`Sums`               `intervals.py`          of answers and items, for intervals              `conclude`
`Calibrated`         `calibration.py`        the power of probabilities, and why              `calibrate`
`Intervals`          `intervals.py`          the ends of all intervals                        `find_intervals`
`Course`             `result.py`             objective and iterations                         `_learn`
`Labels`             `result.py`             labels of items, with their probabilities        `make_result`
`FitResult`          `result.py`             all of these but sums over single items          `make_result`
`Comparison`         `comparison.py`         the fit beside majority vote                     `compare_with_vote`
`FusionChecks`       `result.py`             all that `fuse` compared                         `compare_fused`
`Finding`            `findings.py`           a sentence on what is doubtful, with remedies    `run_checks`
`Result`             `result.py`             a `FitResult` with tables and findings           `complete`
===================  ======================  ===============================================  ==========================

`compare_fused` and `complete` are in `models/base.py`. Models, documents and files read a `Result` alone.
"""
