"""The command line, run in the process of the test."""

from __future__ import annotations

from inspect import signature

from click.testing import CliRunner, Result

from consilience.cli.main import program

# What may be set where tests run, and would change what is printed.
CLEAN = {"COLUMNS": "80", "FORCE_COLOR": None, "TTY_COMPATIBLE": None, "CONSILIENCE_THREADS": None}

# Before click 8.2 the two outputs had to be asked for separately.
SEPARATELY = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


def run(*arguments: object, standard_input: str | bytes | None = None, **environment: str) -> Result:
    """Run the program with these arguments; `environment` holds more variables to set."""
    runner = CliRunner(env={**CLEAN, **environment}, **SEPARATELY)
    return runner.invoke(program, [str(each) for each in arguments], input=standard_input)
