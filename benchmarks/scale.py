def report(quick=False):
    return "## Growth\n"
