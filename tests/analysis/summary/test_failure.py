"""Why a run failed, in few words."""

from __future__ import annotations

import signal

import pytest

from gpuwatch.analysis.summary.failure import cause_in, in_few_words
from gpuwatch.session.reading.status import State, Status

FAILED = Status(State.FAILED, "exit code 1", 1)
MEMORY = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.11 GiB of "
    "which 18.20 GiB is free."
)


@pytest.mark.parametrize(
    "reason",
    [
        f"torch.OutOfMemoryError: {MEMORY}",
        f"torch.cuda.OutOfMemoryError: {MEMORY}",
        f"RuntimeError: {MEMORY}",
        f"out of memory: {MEMORY}",
        "CUDA out of memory. Tried to allocate 20.00 GiB (GPU 0; 79.11 GiB total capacity)",
    ],
)
def test_of_a_gpus_memory_it_says_what_was_tried(reason: str) -> None:
    assert in_few_words(FAILED, reason) == "CUDA out of memory (tried 20.00 GiB)"


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("ModuleNotFoundError: No module named 'x'",
         "exit code 1: ModuleNotFoundError: No module named 'x'"),
        ("torch.distributed.DistBackendError: NCCL error. See the log. Now.",
         "exit code 1: DistBackendError: NCCL error"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'a.b'",
         "exit code 1: FileNotFoundError: [Errno 2] No such file or directory: 'a.b'"),
        ("RuntimeError: CUDA error: out of memory", "CUDA error: out of memory"),
        ("the data is not there", "exit code 1: the data is not there"),
        ("", "exit code 1"),
    ],
)  # fmt: skip
def test_otherwise_it_is_the_exit_code_with_the_first_sentence(reason: str, told: str) -> None:
    assert in_few_words(FAILED, reason) == told


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (signal.SIGSEGV, "segmentation fault (SIGSEGV)"),
        (signal.SIGABRT, "aborted (SIGABRT)"),
        (signal.SIGTERM, "terminated (SIGTERM)"),
        (37, "ended (signal 37)"),
    ],
)
def test_a_signal_is_said_in_words(number: int, told: str) -> None:
    assert in_few_words(Status(State.KILLED, "ended by it", 128 + number), "45 %") == told


def test_the_kernels_want_of_memory_is_said_too() -> None:
    killed = Status(State.KILLED, "ended by SIGKILL (out of memory)", 137)
    assert in_few_words(killed, "", out_of_memory=True) == "out of memory, killed (SIGKILL)"
    assert in_few_words(FAILED, "", out_of_memory=True) == "exit code 1, out of memory"


def test_a_run_that_could_not_be_started_says_so_and_a_good_one_nothing() -> None:
    never = Status(State.FAILED, "could not be started: no such image. Pull it.", None)
    assert in_few_words(never, "") == "could not be started: no such image"
    assert in_few_words(Status(State.FINISHED, "finished", 0), MEMORY) == ""
    assert in_few_words(Status(State.LOST, "the end was not seen", None), MEMORY) == ""


TRACEBACK = "Traceback (most recent call last):"
FRAME = '  File "train.py", line 3, in <module>'
CHILD = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"
RULE = "=" * 60


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ([TRACEBACK, FRAME, "RuntimeError: CUDA error: device-side assert triggered",
          "CUDA kernel errors might be reported later.", "Compile with `TORCH_USE_CUDA_DSA`."],
         "RuntimeError: CUDA error: device-side assert triggered"),
        ([TRACEBACK, FRAME, "KeyError: 'x'", "", "During handling of it:", "",
          TRACEBACK, FRAME, "app.Broken: no config"], "app.Broken: no config"),
        ([TRACEBACK, FRAME, "RuntimeError: Error(s) in loading state_dict:", "    Missing key(s)"],
         "RuntimeError: Error(s) in loading state_dict"),
        ([TRACEBACK, FRAME, "OSError: Caught OSError in a worker.", f"Original {TRACEBACK}", FRAME,
          "OSError: corrupt jpeg", ""], "OSError: corrupt jpeg"),
        ([TRACEBACK, FRAME, "KeyboardInterrupt", "stopped: by the user"], "KeyboardInterrupt"),
        ([f"[rank1]: {TRACEBACK}", f"[rank1]: {FRAME}", f"[rank0]: {TRACEBACK}",
          "[rank1]: ValueError: rank one is broken", "[rank0]: OSError: connection closed",
          TRACEBACK, FRAME, CHILD, RULE, "  exitcode : 1", RULE],
         "rank 1: ValueError: rank one is broken"),
        ([TRACEBACK, FRAME, CHILD, RULE, "  rank : 1 (local_rank: 1)", "  exitcode : -9 (pid: 7)",
          "  traceback : Signal 9 (SIGKILL)", RULE], "rank 1 died first: killed by SIGKILL"),
        (["W1130 17:21:33.5 27 torch/distributed/run.py:982] ***", "x: can't open file 'x.py'",
          "E1130 17:21:33.8 27 torch/distributed/elastic/api.py:1002] failed (exitcode: 2)",
          TRACEBACK, FRAME, CHILD, RULE, "x.py FAILED", "Failures:", "[1]:",
          "  traceback : Signal 15 (SIGTERM)", "Root Cause (first observed failure):", "[0]:",
          "  traceback : To enable traceback see: https://pytorch.org/docs", RULE],
         "x: can't open file 'x.py'"),
        (["x: No module named torch (while looking for 'torch.distributed.run')"],
         "x: No module named torch (while looking for 'torch.distributed.run')"),
        (["training failed: see log", "-----", ""], "training failed: see log"),
        ([TRACEBACK, FRAME, "MemoryError: host out of memory", "line two"],
         "MemoryError: host out of memory"),
        ([TRACEBACK, FRAME, "RuntimeError: CUDA out of memory", "halved the batch", "step 0",
          "step 1", "step 2", "cp: cannot stat 'x'"], "cp: cannot stat 'x'"),
        ([TRACEBACK, FRAME, "pydantic.ValidationError: 5 errors",
          *(line for field in "abcde" for line in (field, "  Field required"))],
         "pydantic.ValidationError: 5 errors"),
        ([TRACEBACK, FRAME, "KeyError: 'x'", "Exception ignored in: <function f>", TRACEBACK, FRAME,
          "OSError: bad descriptor"], "KeyError: 'x'"),
        ([TRACEBACK, FRAME, "KeyError: 'x'", "Exception ignored in: <f>", TRACEBACK, FRAME],
         "KeyError: 'x'"),
        (["no labels", "Exception ignored in: <stdout>", "BrokenPipeError: [Errno 32]"],
         "no labels"),
        ([TRACEBACK, FRAME, "WARNING: another thread", "OutOfPatience: three epochs"],
         "OutOfPatience: three epochs"),
        ([TRACEBACK, FRAME, "KeyError: 'x'", TRACEBACK, FRAME, "Broken: no config"],
         "Broken: no config"),
        ([f"[rank1]: {TRACEBACK}", f"[rank1]: {FRAME}", "[rank1]: KeyError: 'x'",
          *(f"[rank0]: step {step}" for step in range(9))], "KeyError: 'x'"),
        ([], ""),
    ],
)  # fmt: skip
def test_its_reason_is_the_line_that_begins_the_exception(lines: list[str], cause: str) -> None:
    assert cause_in(lines) == cause


LOST = "RuntimeError: [/x/gloo/transport/tcp/pair.cc:545] Read error: Connection reset by peer."


def ranks(*ended: tuple[int, int]) -> list[str]:
    """The end of torchrun's output; the rank that it saw fail first is last."""
    ranks = [(f"  rank      : {n} (local_rank: {n})", f"  exitcode  : {code}") for n, code in ended]
    return [TRACEBACK, FRAME, CHILD, RULE, *(line for each in ranks for line in each), RULE]


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (ranks((0, -15), (1, 3)), "rank 1 died first: exit code 3"),
        (ranks((0, -15), (1, -9)), "rank 1 died first: killed by SIGKILL"),
        (ranks((1, 3), (0, 1)), "rank 1 died first: exit code 3"),  # both were seen in one second
        (["[rank1]: Traceback (most recent call last):", "[rank1]: ValueError: bad",
          *ranks((0, -15), (1, 1))], "rank 1: ValueError: bad"),
        (ranks((1, -15), (0, 1)), f"rank 0: {LOST}"),
    ],
)  # fmt: skip
def test_a_rank_that_lost_another_tells_no_cause(lines: list[str], cause: str) -> None:
    lost = [f"[rank0]: {TRACEBACK}", f"[rank0]: {FRAME}", f"[rank0]: {LOST}"]
    assert cause_in([*lost, *lines]) == cause


def test_a_rank_that_raised_nothing_is_told_unless_it_said_more() -> None:
    assert cause_in(ranks((1, -15), (0, -11))) == "rank 0 died first: killed by SIGSEGV"
    assert "died first" not in cause_in(["x.py: error: no such flag", *ranks((0, 2))])


def test_without_prefixes_the_rank_that_died_may_be_the_one_that_raised() -> None:
    reset = "ConnectionResetError: [Errno 104] Connection reset by peer"
    for prefix in ("", "[default0]: "):
        lines = [f"{prefix}{line}" for line in (TRACEBACK, FRAME, reset)]
        assert cause_in([*lines, *ranks((1, -15), (0, 1))]) == reset


def test_what_torchrun_recovered_from_is_no_cause_of_the_end() -> None:
    def failed(code: int, agent: int = 7) -> str:
        where = "torch/distributed/elastic/multiprocessing/api.py:1002"
        end = f"failed (exitcode: {code}) local_rank: 1 (pid: 9) of binary: python"
        return f"E1201 03:01:09.173000 {agent} {where}] {end}"

    first = [
        *(f"[rank1]: {line}" for line in (TRACEBACK, FRAME, "ValueError: first try")),
        failed(1),
    ]
    assert cause_in([*first, *ranks((0, -15), (1, 1))]) == "rank 1: ValueError: first try"
    assert cause_in([*first, failed(3), *ranks((1, -15), (0, 3))]) == (
        "rank 0 died first: exit code 3"
    )
    second = [*(f"[rank0]: {line}" for line in (TRACEBACK, FRAME, "KeyError: 'x'")), failed(1)]
    assert cause_in([*first, *second, *ranks((1, -15), (0, 1))]) == "rank 0: KeyError: 'x'"
    other = [failed(1, agent=8), *ranks((0, -15), (1, 1))]
    assert cause_in([*first, *other]) == "rank 1: ValueError: first try"


def test_what_failed_after_torchruns_summary_is_told() -> None:
    failed = [TRACEBACK, FRAME, "KeyError: 'x'", *ranks((0, 1))]
    upload = "upload of results failed: no space"
    assert cause_in([*failed, upload]) == upload
    assert cause_in([*failed, TRACEBACK, FRAME, "OSError: no space"]) == "OSError: no space"
    assert (
        cause_in([*failed, "srun: error: n1: task 0: Exited with exit code 1"]) == "KeyError: 'x'"
    )
    said = ["x.py: error: no such flag", *ranks((0, 2)), "srun: error: n1: task 0: Exited"]
    assert cause_in(said) == said[0]
    lost = [f"[rank1]: {line}" for line in (TRACEBACK, FRAME, LOST)]
    assert cause_in([*failed, *lost]) == "KeyError: 'x'"


def test_the_class_of_a_ranks_exception_is_told_without_its_path() -> None:
    assert in_few_words(FAILED, "rank 1: a.b.Broken: no") == "exit code 1: rank 1: Broken: no"
    assert in_few_words(FAILED, f"rank 1: {MEMORY}").startswith("rank 1: CUDA out of memory (tri")


def test_that_a_wrapper_saw_its_program_fail_is_no_reason_after_the_programs_own() -> None:
    failed = "subprocess.CalledProcessError: Command '['{}', 'x']' returned non-zero exit status 1."
    own, wrapper = [TRACEBACK, FRAME, "KeyError: 'x'"], failed.format("/usr/bin/python3.11")
    assert cause_in([*own, TRACEBACK, FRAME, wrapper]) == "KeyError: 'x'"
    assert cause_in([TRACEBACK, FRAME, wrapper]) == wrapper
    went_on = [*own, "going on", TRACEBACK, FRAME, wrapper]
    assert cause_in(went_on, [0, 0, 0, *[10**9] * 4]) == wrapper
    assert cause_in([*own, TRACEBACK, FRAME, failed.format("make")]) == failed.format("make")


def test_an_exception_after_which_the_program_went_on_is_not_its_reason() -> None:
    lines = [TRACEBACK, FRAME, "FileNotFoundError: no cache", "going on", "error: no labels"]
    assert cause_in(lines, [0, 0, 0, 0, 0]) == "FileNotFoundError: no cache"
    assert cause_in(lines, [0, 0, 0, 0, 300_000_000]) == "error: no labels"
    added = ["wandb: synced", "[W1130 12:00:00 Group.cpp:1] Warning: left", "  warnings.warn("]
    added += ["Training:  3%|#    | 3/100"]
    assert cause_in([*lines[:3], *added], [0, 0, 0, 1, 10**9, 10**9, 10**9]) == lines[2]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("train.py: error: unrecognized arguments: --api-key=hf_S", "exit code 1"),
        ("tokens.json: sk-1", "exit code 1"),
        ("tokens.Sk", "exit code 1"),
        ("SecretKeyOfMine", "exit code 1"),
        ("ValueError: bad key sk-1", "exit code 1: ValueError"),
        ("rank 1: ValueError: sk-1", "exit code 1: rank 1: ValueError"),
        ("a.b.HTTPError: 401 for https://u:p@h/?t=1", "exit code 1: HTTPError"),
        ("KeyboardInterrupt", "exit code 1: KeyboardInterrupt"),
        ("sk-1 CUDA error: Out of memory: sk-1", "out of memory"),
        (f"sk-1: {MEMORY}", "CUDA out of memory (tried 20.00 GiB)"),
        (f"SecretKeyOf{MEMORY}", "out of memory"),
        (MEMORY.replace("20.00", "1" * 13), "out of memory"),
        (f"rank {'1' * 7}: ValueError: x", "exit code 1"),
        ("", "exit code 1"),
    ],
)  # fmt: skip
def test_nothing_that_a_program_printed_is_passed_on_but_the_class_of_its_exception(
    reason: str, told: str
) -> None:
    assert in_few_words(FAILED, reason, printed=False) == told


def test_of_a_run_that_could_not_be_started_the_launchers_words_are_not_passed_on() -> None:
    never = Status(State.FAILED, "could not be started: secret=abc", None)
    assert in_few_words(never, "", printed=False) == "could not be started"


def test_an_absurd_exit_code_in_a_summary_is_none() -> None:
    assert cause_in(["no labels", *ranks((0, -int("9" * 4000)))]) == "no labels"


def test_a_signal_and_the_want_of_memory_are_passed_on() -> None:
    killed = Status(State.KILLED, "ended by SIGKILL (out of memory)", 137)
    words = in_few_words(killed, "sk-1", out_of_memory=True, printed=False)
    assert words == "out of memory, killed (SIGKILL)"
    words = in_few_words(FAILED, "OSError: sk-1", out_of_memory=True, printed=False)
    assert words == "exit code 1, out of memory: OSError"
