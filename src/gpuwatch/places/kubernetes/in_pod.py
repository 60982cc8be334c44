"""The program of a pod: checks what was sent, records, and stays until that is fetched. Beside that
it answers: what the pod is doing, what the recorder printed. A pod of several images runs it in a
container of each, one after the other, which share :data:`DATA`.

It is sent along and stands alone: any Python from 3.6 on can read it, so that an old one gets an
error in one line. It never asks the cluster for anything.
"""

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SENT, DATA = "/gpuwatch/sent", "/gpuwatch/data"
"""Folders of the pod: what was sent, read-only, and what may be written."""
STUDIES = f"{DATA}/studies"
"""The folder of what is kept, where a claim is mounted if there is one."""
PROGRAM, CAPSULE, PLAN = "pod.py", "gpuwatch.pyz", "plan.json"
STATE, LOG = "state.json", "recorder.log"
"""Files in :data:`STUDIES`: what the pod is doing, and what the recorder printed."""
MESSAGE = "/dev/termination-log"
"""What a container leaves behind in its pod's status; Kubernetes takes 4,096 bytes."""
_MESSAGE_BYTES = 4000
_FIGURES_SECONDS = 20.0
"""For which the runs' figures may take."""
_END_BYTES = 4000
_PARTING_SECONDS = 10.0
"""For which a container stays that is told to go, or is not the last, so that the end of its
sessions is fetched."""


class Pod:
    """The one process that Kubernetes knows of in a container."""

    def __init__(self, told: "dict[str, Any]") -> None:
        self.told = told
        self.before = last_state()
        """What the container before said."""
        self.over = self.before.get("phase") == "ended"
        """Whether no more is recorded in this pod."""
        self.study = os.path.join(STUDIES, told["study"])
        self.tell_sharing()
        self.recorder: subprocess.Popen[bytes] | None = None
        self.stop = self.go = False

    def tell_sharing(self) -> None:
        """Tell the recorder how pods share a GPU of this node."""
        node = os.environ["GPUWATCH_POD_NODE"]
        told = [text for text, names in self.told["shared"].items() if node in names]
        for text in [*told, self.told["shared_elsewhere"]][:1]:
            if text is not None:
                os.environ["GPUWATCH_POD_GPU_SHARED"] = text

    def ask_to_stop(self, *_: object) -> None:
        """End the recorder, and stay until all is fetched."""
        self.stop = True
        if self.recorder is not None and self.recorder.poll() is None:
            self.recorder.send_signal(signal.SIGTERM)

    def ask_to_go(self, *_: object) -> None:
        """End the recorder, and go."""
        self.go = True
        self.ask_to_stop()

    def tell(self, **state: object) -> None:
        """Say what the pod is doing, for whoever asks next."""
        os.makedirs(STUDIES, exist_ok=True)
        path = os.path.join(STUDIES, STATE)
        with open(path + ".part", "w") as file:
            json.dump(state, file)
        os.rename(path + ".part", path)

    def prepare(self) -> None:
        """Check what was sent, and put the plan where the recorder finds it."""
        for name in (CAPSULE, PLAN):
            with open(os.path.join(SENT, name), "rb") as file:
                data = file.read()
            if hashlib.sha256(data).hexdigest() != self.told["sha256"][name]:
                raise SystemExit(f"{name} is not what was sent")
        if self.before:
            return
        os.makedirs(self.study)
        with open(os.path.join(self.study, PLAN), "wb") as file:
            file.write(data)

    def folder(self) -> "str | None":
        """Where the recorder runs: in the files that were sent, once they are there."""
        if not self.told["work"]:
            return None
        work = os.path.join(self.study, "work")
        if not os.path.isdir(work):
            self.tell(phase="waiting")
        while not os.path.isdir(work) and not self.stop:
            time.sleep(0.2)
        return work

    def record(self) -> None:
        """Run the recorder to its end."""
        folder = self.folder()
        self.rest()
        killed = self.before.get("out_of_memory", False)
        if self.stop:
            self.end(code=None, out_of_memory=killed)
            return
        command = [sys.executable, os.path.join(SENT, CAPSULE), "start-plan", self.study]
        with open(os.path.join(STUDIES, LOG), "ab") as log:
            recorder = subprocess.Popen(
                command + self.told["words"], cwd=folder, stdout=log, stderr=log
            )
        self.recorder = recorder
        self.tell(phase="running", out_of_memory=killed)
        if self.stop:
            self.ask_to_stop()
        while recorder.poll() is None:
            time.sleep(0.1)
            bury(recorder.pid)
        code = recorder.returncode
        killed = killed or out_of_memory()
        if self.told["last"] or self.stop or code < 0:
            self.end(code=code, out_of_memory=killed)
        else:
            self.tell(phase="running", out_of_memory=killed)

    def rest(self) -> None:
        """Rest, as between two runs of one container."""
        until = time.monotonic() + self.told["rest"]
        while time.monotonic() < until and not self.stop:
            time.sleep(0.1)

    def end(self, **state: object) -> None:
        """Say that no more is recorded in this pod."""
        self.over = True
        self.tell(phase="ended", told_to_go=self.go, **state)

    def leave_figures(self) -> None:
        """Leave a few figures of the runs behind, for who comes after the pod's files are gone."""
        command = [sys.executable, os.path.join(SENT, CAPSULE), "in-part", self.study]
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, check=True, timeout=_FIGURES_SECONDS
            )
            if len(done.stdout) <= _MESSAGE_BYTES:
                with open(MESSAGE, "wb") as file:
                    file.write(done.stdout)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"gpuwatch: no figures are left behind: {error}", file=sys.stderr)

    def linger(self) -> None:
        """Stay until somebody says go, or nobody did for too long; before another container only
        for who fetches now, as where the sessions are kept."""
        if not self.over or not self.told["linger"]:
            until = time.monotonic() + _PARTING_SECONDS
            while others() and time.monotonic() < until and not self.go:
                time.sleep(0.1)
                bury()
            return
        until = time.monotonic() + (_PARTING_SECONDS if self.go else self.told["linger"])
        told_before = self.go
        while time.monotonic() < until and self.go == told_before:
            time.sleep(0.1)


def bury(recorder: int = 0) -> None:
    """Wait for the processes that others left to this one, the first of the container."""
    try:
        while True:
            # Not the recorder itself: its end is its own object's to see.
            left = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if left is None or left.si_pid == recorder:
                return
            os.waitpid(left.si_pid, 0)
    except ChildProcessError:
        pass


def others() -> bool:
    """Whether another process is in this container."""
    return any(name.isdigit() and name != "1" for name in os.listdir("/proc"))


def out_of_memory() -> bool:
    """Whether the kernel killed a process of this pod for its memory."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(path) as file:
                counts = dict(line.split() for line in file)
        except (OSError, ValueError):
            continue
        if int(counts.get("oom_kill", "0")) > 0:
            return True
    return False


def begin(told: str) -> None:
    """Do all of it. The exit code is 0 whatever the recorder's is: that is in its sessions."""
    pod = Pod(json.loads(told))
    if pod.over:
        return
    signal.signal(signal.SIGTERM, pod.ask_to_go)
    signal.signal(signal.SIGUSR1, pod.ask_to_stop)
    pod.prepare()
    pod.record()
    show_log()  # for `kubectl logs`
    if pod.over and pod.told["linger"]:
        pod.leave_figures()
    pod.linger()


def last_state() -> "dict[str, Any]":
    """What the pod says that it is doing; empty before it began."""
    try:
        with open(os.path.join(STUDIES, STATE)) as file:
            state: dict[str, Any] = json.load(file)
            return state
    except FileNotFoundError:
        return {}
    except PermissionError:
        raise SystemExit(
            "the images run as different users, who cannot share files: give both the same USER, "
            "or each a pod of its own: --on kubernetes,jobs=image"
        ) from None


def show_state() -> None:
    """Print what the pod is doing, as JSON."""
    json.dump(last_state(), sys.stdout)


def show_log() -> None:
    """Print the end of what the recorder printed."""
    try:
        with open(os.path.join(STUDIES, LOG), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _END_BYTES))
            sys.stdout.write(file.read().decode("utf-8", "replace"))
    except OSError:
        pass


def stop() -> None:
    """End the recorder; the pod stays until all is fetched."""
    os.kill(1, signal.SIGUSR1)


def receive(study: str, size: str) -> None:
    """Unpack a tar archive of so many bytes, on standard input, as the study's working folder."""
    folder = os.path.join(STUDIES, study)
    data = sys.stdin.buffer.read(int(size))
    if len(data) != int(size):
        raise SystemExit("it did not arrive whole")
    part, work = os.path.join(folder, f".work.{os.getpid()}"), os.path.join(folder, "work")
    os.makedirs(part)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(part)  # noqa: S202 - the user's own files, sent by the user
    try:
        os.rename(part, work)
    except OSError:
        if not os.path.isdir(work):
            raise


def wait(seconds: str) -> None:
    """Stay for whoever fetches what an earlier pod kept, and record nothing."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        time.sleep(0.1)
        bury()


def run(study: str, *words: str) -> None:
    """Run gpuwatch; ``@study`` stands for the study's folder."""
    folder = os.path.join(STUDIES, study)
    named = [folder if word == "@study" else word for word in words]
    os.execv(sys.executable, [sys.executable, os.path.join(SENT, CAPSULE), *named])  # noqa: S606


def main() -> None:
    """Do what the first argument says."""
    if sys.version_info < (3, 10):  # noqa: UP036 - that is the question
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise SystemExit(f"gpuwatch needs Python 3.10 or newer, and the image has {version}")
    os.umask(0o077)
    commands: dict[str, Callable[..., None]] = {
        "begin": begin,
        "state": show_state,
        "log": show_log,
        "stop": stop,
        "receive": receive,
        "run": run,
        "wait": wait,
    }
    commands[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
