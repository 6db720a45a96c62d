"""Fitting: how parameters are found. One loop, written once, for every structure and every worker model.

Who reads a fit from the start opens the files in this order:

====================  ==================================================================================
`estimator.py`        what every estimator has: parameters, and what a fit asks of them
`observations.py`     what is fitted: answers, known labels, and what else is known of the items
`starts.py`           what is checked before, and where the loop starts; `moments.py` is one such start
`em.py`               the loop `run_em`, the `Problem` that it works on, and the `Estimates` of a result
`checkpoints.py`      where an interrupted run of the loop goes on
`workers/`            how workers answer: rows, M-step and E-step of each worker model
`structures/`         how labels hang together: independent items, chains, fields, sets of tags
`distributions.py`    the M-step of tables of counts, by EM or variational Bayes
`cells.py`            tables of counts that are mostly zero
`labels.py`           labels from votes and from probabilities
`hidden_answers.py`   which answers are hidden, how they are predicted, and the power that this calls for
`chains.py`           the coupling of a hidden Markov model, and its transitions
`fields.py`           the coupling of a Markov random field
`features.py`         a classifier of the items' features as their prior
`teaching.py`         known labels as a teacher: what they say of workers beyond what agreement tells
`copies.py`           workers who copy each other
`sharing.py`          several questions with one prior of the workers, by their `skills.py`
`averages.py`         numbers instead of labels
====================  ==================================================================================
"""

# A difference counts as one if it exceeds so many standard errors.
STANDARD_ERRORS = 2.0
# 95 % intervals: the quantiles at their ends, and half their width in standard deviations.
TAILS_95, NORMAL_95 = (0.025, 0.975), 1.959963984540054
