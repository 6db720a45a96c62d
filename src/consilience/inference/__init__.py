"""Fitting: how parameters are found. One loop, written once, for every structure and every worker model."""
