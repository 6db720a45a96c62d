"""The Dask engine where things die: workers, schedulers, clients, and the program itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from consilience.answers import answers as blocks
from consilience.engines import dask as engine_module
from consilience.engines import open_engine
from consilience.engines.dask import Dask
from consilience.errors import EngineError

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
psutil = pytest.importorskip("psutil")
dask_kills = pytest.importorskip("dask_kills")

pytestmark = pytest.mark.robust


@pytest.fixture(scope="module")
def crowd():
    return dask_kills.make_crowd()


@pytest.fixture(autouse=True)
def many_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_SIZE", dask_kills.BLOCK_SIZE)
    monkeypatch.setattr(dask_kills, "N_ITERATIONS", 15)


@pytest.fixture
def short_grace(monkeypatch):
    monkeypatch.setattr(engine_module, "GRACE", 1)


def once_at(iteration, action):
    """Return a callback that acts once, after that iteration."""
    return lambda progress: action() if progress.iteration == iteration else None


# ------------------------------------------------------------------------------------------------------- lost and found


@pytest.mark.parametrize(("restart", "seed"), [(True, 1), (True, 2), (False, 3)])
def test_a_lost_worker_costs_only_time(crowd, restart, seed):
    expected = dask_kills.bits_of(dask_kills.fit(crowd))
    outcome = dask_kills.kill_during_fit(crowd, expected, undisturbed=5, restart=restart, seed=seed)
    assert outcome.same_bits


def test_work_goes_on_after_the_cluster_forgot_everything(crowd):
    """All futures are cancelled when workers are restarted: blocks are sent again from here."""
    expected = dask_kills.bits_of(dask_kills.fit(crowd))
    with dask_kills.cluster_of(2) as client:
        model = dask_kills.fit(crowd, client, once_at(5, client.restart))
    assert dask_kills.bits_of(model) == expected


def die_at_first(block, folder, n_deaths):
    """Kill the worker that runs this, the first times it is run."""
    if block == 1 and len(list(Path(folder).iterdir())) < n_deaths:
        Path(folder, str(time.time())).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * block


def test_work_that_kills_workers_is_sent_again_a_few_times(tmp_path, monkeypatch):
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), dask_kills.cluster_of(1) as client:
        engine = Dask(client)
        assert list(engine.map(die_at_first, engine.place([1, 2, 3]), str(tmp_path), 2)) == [10, 20, 30]
        assert len(list(tmp_path.iterdir())) == 2
        monkeypatch.setattr(engine_module, "MOST_LOSSES", 1)
        with pytest.raises(EngineError, match=r"lost the same work 2 times \(.+\)\. Look at .* engine='threads'"):
            list(engine.map(die_at_first, engine.place([1, 2, 3]), str(tmp_path), 100))


def divide(block, divisor):
    return block / divisor


# ------------------------------------------------------------------------------------------------------- gone for good


def test_a_closed_client(crowd):
    with dask_kills.cluster_of(1) as client:
        engine = Dask(client)
        with pytest.raises(EngineError, match="or the client is closed"):
            dask_kills.fit(crowd, engine, once_at(3, client.close))
        with pytest.raises(EngineError, match="or the client is closed"):
            dask_kills.fit(crowd, engine)


def test_a_cluster_without_workers(crowd, short_grace):
    with dask_kills.cluster_of(0) as client:
        begun = time.monotonic()
        with pytest.raises(EngineError, match=r"The Dask cluster has no workers, .*Start it again"):
            dask_kills.fit(crowd, client)
        assert time.monotonic() - begun < 10


@pytest.fixture
def scheduler():
    """A scheduler in a process of its own, with one worker: the process and the address."""
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(
        [*command, "--dashboard-address", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    ) as process:
        address = next(line.split()[-1] for line in process.stderr if "Scheduler at" in line)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"]
        with subprocess.Popen(worker, stderr=subprocess.DEVNULL) as helper:
            yield process, address
            helper.kill()
        process.kill()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_scheduler_that_goes_away(crowd, how, scheduler, short_grace, caplog):
    process, address = scheduler
    with distributed.Client(address, timeout=5, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
        begun = []

        def stop():
            begun.append(time.monotonic())
            process.send_signal(how)

        with pytest.raises(EngineError, match=r"The Dask cluster (does not answer|has no workers)"):
            dask_kills.fit(crowd, client, once_at(3, stop))
        assert time.monotonic() - begun[0] < 20
        process.kill()


# -------------------------------------------------------------------------------------------------------- on our own


def test_a_cluster_of_our_own_is_for_this_machine_only():
    with open_engine("dask") as engine:
        assert list(engine.map(divide, engine.place([2, 4]), 2)) == [1, 2]
        here = psutil.Process()
        addresses = {
            connection.laddr.ip
            for process in [here, *here.children(recursive=True)]
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
        assert addresses == {"127.0.0.1"}
        with pytest.raises(ValueError, match="No global client found"):
            distributed.get_client()  # it is nobody else's
