"""How many? Shares, means and differences by a sample of known labels, and audits of the workers by it.

This room is about all items, and has nothing to do with the parameter ``estimation`` of models.

==================  ==============================================================================
`population.py`     the items that are counted: what is predicted for all, and known of a sample
`difference.py`     one share or mean, and its interval: predictions, corrected by the sample
`estimate.py`       `Estimate`: all shares and means, by group, and differences of groups
`judges.py`         `Audit`: how good each worker is by the sample
==================  ==============================================================================
"""
