"""The ground of a soak: folders, a driver, engines, and gpuwatch as it is started there."""

from __future__ import annotations

import select
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from gpuwatch.core.paths import session_of
from tests.conftest import Cli
from tests.engines import available
from tests.fake_nvml import FakeDriver
from tests.soak import traces
from tests.soak.traces import TAG, Traces
from tests.terminal import Pty

STEPS = Path(__file__).parents[1] / "cli" / "steps.py"
GPUS = 2


def first_line(process: subprocess.Popen[str], seconds: float = 60) -> str:
    """What a program with a pipe says first, once it does."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], seconds)[0], "it says nothing"
    return process.stdout.readline()


@dataclass
class Ground:
    """One home for all that the soak starts.

    ``environments``: the value of ``--env`` for each kind that can run here.
    """

    folder: Path
    environments: dict[str, str]
    driver: FakeDriver = field(init=False)
    churn: Cli = field(init=False)
    stays: Cli = field(init=False)

    def __post_init__(self) -> None:
        for name in ("home", "tmp", "runtime", "disk", "project"):
            (self.folder / name).mkdir(mode=0o700)
        shutil.copy(STEPS, self.project)
        self.driver = FakeDriver(self.folder, GPUS)
        self.churn, self.stays = self._cli("churn"), self._cli("stays")

    def _cli(self, part: str) -> Cli:
        own = self.driver.variables
        own[TAG] = self.tag(part)
        own["TMPDIR"] = str(self.folder / "tmp")
        own["XDG_RUNTIME_DIR"] = str(self.folder / "runtime")
        own["TERM"] = "xterm-256color"
        return Cli(self.folder / "home", own)

    def tag(self, part: str) -> str:
        """What processes of ``"churn"`` or ``"stays"`` have in their variable."""
        return f"{self.folder}:{part}"

    @property
    def project(self) -> Path:
        """A folder of the user's own, where the workload's script is."""
        return self.folder / "project"

    @property
    def disk(self) -> Path:
        """Where a small file system is mounted now and then."""
        return self.folder / "disk"

    @property
    def studies(self) -> Path:
        return self.folder / "home/.local/share/gpuwatch/studies"

    @property
    def runs(self) -> Path:
        return self.folder / "home/.local/state/gpuwatch/runs"

    def sessions(self) -> set[Path]:
        return set(self.studies.glob("*/*.gpuwatch"))

    def folders_of(self, session: Path) -> list[Path]:
        """The folder of the run that is recorded to a file, while it goes on."""
        found = self.runs.iterdir() if self.runs.is_dir() else ()
        return [folder for folder in found if session_of(folder) == session]

    def work(self, steps: int, seconds: float = 0.02) -> tuple[object, ...]:
        """The words of a workload that ends after so many steps."""
        return ("--", sys.executable, self.project / STEPS.name, steps, seconds)

    def held(self, steps: int, go: Path) -> tuple[object, ...]:
        """The same, which ends once there is a file ``go``, too."""
        script = '"$@"; until [ -e "$0" ]; do sleep 0.05; done'
        return ("--", "sh", "-c", script, go, *self.work(steps)[1:])

    def screen(self, cli: Cli, *arguments: object) -> Pty:
        """A command on a terminal of its own."""
        return Pty(cli.argv(*arguments), (100, 30), cli.env, folder=self.project)

    def left(self, part: str, known: Traces | None = None) -> Traces:
        """What processes of a part, and all else of the soak, left; without what is ``known``."""
        folder = self.folder
        found = Traces(
            traces.processes(self.tag(part), folder, self.disk),
            traces.containers(folder),
            traces.mounts(folder),
            traces.files(self.runs),
            (*traces.files(folder / "tmp"), *traces.files(folder / "runtime")),
            traces.unfinished(self.studies),
        )
        if known is None:
            return found
        pairs = zip(vars(found).values(), vars(known).values(), strict=True)
        return Traces(*(tuple(each for each in now if each not in old) for now, old in pairs))


def kinds(image: str | None, root: Path | None) -> dict[str, str]:
    """``--env`` of what can run here; ``image`` and ``root`` hold a small system with Python."""
    found = {"bare": "bare"}
    if image is not None:
        found["docker"] = f"docker={image}"
    if root is not None:
        for kind in ("apptainer", "charliecloud"):
            if available.why_not(kind) is None:
                found[kind] = f"{kind}={root}"
    return found
