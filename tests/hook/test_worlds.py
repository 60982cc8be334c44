"""The hook where something is broken, unusual or gone: real programs, which must not notice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.forks import Forks
from tests.hook.hooked import Hooked
from tests.waiting import until

pytestmark = pytest.mark.torch
PLAIN = "from training import train\nprint(train())"
STEPS = 6


@pytest.fixture
def hooked(tmp_path: Path, programs: None) -> Hooked:
    return Hooked(tmp_path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, plainly: Forks) -> str:
    """What the program prints without the hook."""
    return Hooked(tmp_path_factory.mktemp("plain")).plain(PLAIN, plainly)


# The channel.


@pytest.mark.parametrize("world", ["read-only", "missing", "a file"])
def test_a_folder_that_takes_no_file_is_no_concern_of_the_program(
    hooked: Hooked, world: str, plain: str
) -> None:
    if world == "read-only":
        if os.geteuid() == 0:  # root may write there: /proc takes a file of nobody
            hooked.variables["GPUWATCH_HOOK"] = "/proc"
        hooked.channel.chmod(0o500)
    elif world == "missing":
        hooked.channel.rmdir()
    else:
        hooked.channel.rmdir()
        hooked.channel.touch()
    assert hooked.run(PLAIN) == plain


def test_a_full_disk_ends_the_hook_alone(hooked: Hooked, plain: str) -> None:
    program = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
        "import sys; sys.dont_write_bytecode = True\n"
    ) + PLAIN
    assert hooked.run(program) == plain
    (file,) = hooked.channel.iterdir()
    assert file.stat().st_size <= 500


def test_a_folder_that_is_removed_while_the_program_runs(hooked: Hooked, plain: str) -> None:
    program = (
        "import os, shutil\n"
        "from training import train\n"
        "folder = os.environ['GPUWATCH_HOOK']\n"
        "print(train(after=lambda step: shutil.rmtree(folder, ignore_errors=True)))"
    )
    assert hooked.run(program) == plain


def test_a_channel_that_is_closed_under_it_ends_the_hook(hooked: Hooked, plain: str) -> None:
    program = (
        "import os\n"
        "from training import train\n"
        "def close(step):\n"
        "    for each in os.listdir('/proc/self/fd'):\n"
        "        try:\n"
        "            if '.jsonl' in os.readlink('/proc/self/fd/' + each): os.close(int(each))\n"
        "        except OSError: pass\n"
        "print(train(after=close))\n"
        "import gpuwatch_hook.tracking as t; print(t.tracker)"
    )
    assert hooked.run(program) == plain + "None\n"


def test_a_file_that_the_program_opens_in_its_place_is_left_alone(
    hooked: Hooked, plainly: Forks
) -> None:
    program = (
        "import os, torch\n"
        "from training import train\n"
        "os.closerange(3, 256)\n"
        "files = [open(f'own{i}', 'w+') for i in range(20)]\n"
        "print(train())\n"
        "print([open(file.name).read() for file in files])"
    )
    assert hooked.run(program) == hooked.plain(program, plainly)


def test_an_error_of_the_hook_is_told_and_the_hook_is_gone(hooked: Hooked, plain: str) -> None:
    program = (
        "import torch, gpuwatch_hook.tracking as t\n"
        "def broken(*_, **__): raise LookupError('of ours')\n"
        "t.Tracker._after = broken\n" + PLAIN + "\nprint(t.tracker)"
    )
    assert hooked.run(program) == plain + "None\n"
    (problem,) = hooked.lines("problem")
    assert problem["text"] == "the hook left the program: LookupError: of ours"


def test_an_archive_that_is_gone_before_torch_is_imported(hooked: Hooked, plain: str) -> None:
    program = "import os, sys\nos.remove(os.environ['PYTHONPATH'])\n" + PLAIN
    assert hooked.run(program) == plain


# Python.


@pytest.mark.parametrize("flag", ["-S", "-E", "-I"])
def test_a_python_that_reads_no_path_runs_without_the_hook(hooked: Hooked, flag: str) -> None:
    program = "import sys\nprint('gpuwatch_hook' in sys.modules)"
    assert hooked.run(program, flag) == "False\n"
    assert hooked.reports == []


def test_a_home_that_cannot_be_written(hooked: Hooked) -> None:
    hooked.variables["HOME"] = "/proc"
    hooked.run(PLAIN)
    assert hooked.steps == STEPS


def test_the_users_own_sitecustomize_and_usercustomize_run(hooked: Hooked) -> None:
    own = hooked.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("HERE = 'own'\nprint('site')")
    (own / "usercustomize.py").write_text("print('user')")
    hooked.variables["PYTHONPATH"] += os.pathsep + str(own)
    # A virtual environment does not look for usercustomize.
    program = "import sys\nprint(sys.modules['sitecustomize'].HERE)\n"
    out = hooked.run(program, python=os.path.realpath("/proc/self/exe"))
    assert out == "site\nuser\nown\n"


def test_a_sitecustomize_that_runs_no_other_hides_the_hook(hooked: Hooked) -> None:
    own = hooked.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("")
    hooked.variables["PYTHONPATH"] = os.pathsep.join([str(own), str(hooked.archive)])
    hooked.run(PLAIN)
    assert hooked.reports == []


CHAINS = """
import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

print("first")
here = os.path.dirname(__file__)
spec = PathFinder.find_spec("sitecustomize", [each for each in sys.path if each != here])
spec.loader.exec_module(module_from_spec(spec))
"""


def test_a_sitecustomize_that_runs_the_hooks_is_not_run_again(hooked: Hooked) -> None:
    places = []
    for name, text in (("first", CHAINS), ("last", "print('last')")):
        (hooked.folder / name).mkdir()
        (hooked.folder / name / "sitecustomize.py").write_text(text)
        places.append(str(hooked.folder / name))
    hooked.variables["PYTHONPATH"] = os.pathsep.join([places[0], str(hooked.archive), places[1]])
    assert hooked.run(PLAIN).splitlines()[:2] == ["first", "last"]
    assert hooked.steps == STEPS


def test_an_error_in_the_users_sitecustomize_is_shown_as_without_the_hook(hooked: Hooked) -> None:
    own = hooked.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("raise RuntimeError('their own')")
    shown = []
    for path in (f"{hooked.archive}{os.pathsep}{own}", str(own)):
        hooked.variables["PYTHONPATH"] = path
        out, errors = hooked.start("print('runs')").communicate(timeout=60)
        assert out == "runs\n"
        shown.append(errors.splitlines()[-1])
    assert shown[0] == shown[1] == "RuntimeError: their own"


def _interpreters() -> list[Path]:
    return sorted((Path.home() / ".pyenv" / "versions").glob("*/bin/python"))


@pytest.mark.parametrize("python", _interpreters(), ids=lambda path: str(path.parts[-3]))
def test_any_python_runs_as_without_the_hook(hooked: Hooked, python: Path) -> None:
    own = hooked.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("HERE = 'own'")
    hooked.variables["PYTHONPATH"] += os.pathsep + str(own)
    program = "import sys\nprint(sys.modules['sitecustomize'].HERE)\n"
    assert hooked.run(program, python=str(python)) == "own\n"
    assert hooked.reports == []


def test_a_frozen_program_runs_without_the_hook(hooked: Hooked) -> None:
    pyinstaller = shutil.which("pyinstaller")
    if pyinstaller is None:
        pytest.skip("PyInstaller is not installed")
    program = hooked.folder / "frozen.py"
    program.write_text("import sys\nprint('gpuwatch_hook' in sys.modules)")
    subprocess.run([pyinstaller, "--log-level=ERROR", program], cwd=hooked.folder, check=True)
    frozen = hooked.folder / "dist" / "frozen" / "frozen"
    environment = {**os.environ, **hooked.variables}
    assert subprocess.check_output([frozen], env=environment, text=True) == "False\n"


# Processes.


WITHOUT_A_LOADER = """
import torch
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("training", ["from training import train\ntrain()", WITHOUT_A_LOADER])
def test_the_parts_of_the_start_are_told(hooked: Hooked, training: str) -> None:
    """Also where something asked for torch before, as transformers does."""
    hooked.run(f"import importlib.util\nassert importlib.util.find_spec('torch')\n{training}")
    (report,) = hooked.reports
    waits = [line["what"] for line in report if line["event"] == "waiting"]
    assert waits == ["import", "first step"]
    (started,) = (line for line in report if line["event"] == "started")
    (startup,) = (line for line in report if line["event"] == "startup")
    parts = [startup[f"{part}_seconds"] for part in ("import", "model", "first_step")]
    assert all(part > 0 for part in parts)
    first = next(line for line in report if line["event"] == "step")
    assert started["monotonic_ns"] + sum(parts) * 1e9 < first["monotonic_ns"]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_loader_report_no_run(hooked: Hooked, context: str) -> None:
    program = (
        "from training import train\nif __name__ == '__main__':\n"
        f"    train(workers=2, context='{context}')"
    )
    hooked.run(program)
    assert len(hooked.lines("startup")) == 1
    assert sum(any(each["event"] == "run" for each in report) for report in hooked.reports) == 1
    assert hooked.steps == STEPS


def test_a_child_that_trains_has_a_file_of_its_own(hooked: Hooked) -> None:
    hooked.run(
        "import multiprocessing as m, torch\n"
        "torch.set_num_threads(1)\n"
        "from training import train\n"
        "child = m.get_context('fork').Process(target=train, args=(9,)); child.start()\n"
        "train()\n"
        "child.join()"
    )
    counts = [
        sum(line["count"] for line in report if line["event"] == "step")
        for report in hooked.reports
    ]
    # A child that multiprocessing ends calls nothing at its exit: its last steps may be missing.
    assert len(counts) == 2 and counts.count(STEPS) >= 1
    assert {report[0]["event"] for report in hooked.reports} == {"hook"}
    assert len({report[0]["pid"] for report in hooked.reports}) == 2


def test_an_exit_without_goodbye_leaves_whole_lines(hooked: Hooked) -> None:
    hooked.run("import os\n" + PLAIN + "\nos._exit(3)", code=3)
    assert hooked.reports[0][0]["event"] == "hook" and hooked.lines("end") == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_is_ended_in_a_step_has_told_those_before(
    hooked: Hooked, number: signal.Signals
) -> None:
    process = hooked.start(
        "import time\nfrom training import train\ntrain(10**5, after=lambda step: time.sleep(0.02))"
    )
    until(lambda: hooked.steps >= 10, "no steps", 120)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == -number
    assert hooked.steps >= 10


def test_threads_that_train(hooked: Hooked) -> None:
    hooked.run(
        "import threading\n"
        "from training import train\n"
        "threads = [threading.Thread(target=train, args=(30,)) for _ in range(3)]\n"
        "for each in threads: each.start()\n"
        "for each in threads: each.join()"
    )
    assert hooked.lines("problem") == [] and hooked.steps > 0


# Programs.


def test_a_backward_pass_that_is_called_by_its_function(hooked: Hooked) -> None:
    hooked.run(
        "import torch\n"
        "weight = torch.ones(3, requires_grad=True)\n"
        "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
        "for _ in range(5):\n"
        "    torch.autograd.backward((weight * 2).sum())\n"
        "    optimizer.step()"
    )
    assert hooked.steps == 5
    assert all(line["phases"]["backward"] > 0 for line in hooked.lines("step"))


def test_loaders_and_functions_are_what_they_were(hooked: Hooked, plainly: Forks) -> None:
    program = (
        "import copy, inspect, pickle, torch\n"
        "from torch.utils.data import DataLoader, dataloader\n"
        "loader = DataLoader(torch.arange(4.0))\n"
        "iterator = iter(loader)\n"
        "print(isinstance(iterator, dataloader._BaseDataLoaderIter), next(iterator))\n"
        "print(type(iterator).__name__, len(iterator), [*copy.copy(loader)])\n"
        "print([*pickle.loads(pickle.dumps(loader))])\n"
        "for copied in (copy.copy, pickle.dumps):\n"
        "    try: print(type(copied(iterator)))\n"
        "    except Exception as error: print(type(error), error)\n"
        "optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1)\n"
        "print(pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer))\n"
        "print(inspect.signature(torch.autograd.backward), torch.autograd.backward.__module__)\n"
        "function = torch.autograd.backward\n"
        "print(function.__name__, pickle.loads(pickle.dumps(function)) is function)"
    )
    assert hooked.run(program) == hooked.plain(program, plainly)


def test_batches_of_changing_sizes_do_not_end_the_hook(hooked: Hooked) -> None:
    hooked.run(
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "data = [torch.randn(2, length) for length in (3, 3, 3, 4, 5, 6, 7, 8, 9, 3)]\n"
        "weight = torch.ones((), requires_grad=True)\n"
        "optimizer = torch.optim.SGD([weight], lr=0.01)\n"
        "for batch in DataLoader(data, batch_size=None):\n"
        "    optimizer.zero_grad()\n"
        "    (batch @ batch.T * weight).sum().backward()\n"
        "    optimizer.step()"
    )
    assert hooked.lines("problem") == [] and hooked.steps == 10
    assert sum(line.get("flop", 0) for line in hooked.lines("step")) > 0
