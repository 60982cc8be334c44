"""Slurm's own commands, run here."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean

NEEDED = ("sbatch", "squeue", "scontrol", "scancel")
_LEFT_OUT = "GPUWATCH_LEFT_OUT"
"""Names to the recorder the bindings that were left out."""
_PREFIXES = (
    *("SLURM_", "SBATCH_", "SQUEUE_", "SINFO_", "SCANCEL_", "SACCT_", "PMIX_", "PMI_"),
    _LEFT_OUT,
)
_KEPT = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS")
"""They tell the commands where Slurm is."""
_BINDINGS = ("SLURM_CPU_BIND", "SLURM_MEM_BIND")
_AWAY = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "Connection refused",
    "Slurm backup controller in standby mode",
    "temporarily unable",
    "Transport endpoint is not connected",
)
"""Of Slurm's own messages: it cannot be asked just now."""
_FRAME = re.compile(
    rf"^((?:{'|'.join((*NEEDED, 'srun', 'sinfo'))}): )?((?:slurm_\w+ )?error: )?"
    r"(allocation failure: )?"
)
"""What stands before the reason: ``squeue: slurm_load_jobs error: ``."""
HINT_AWAY = "look yourself: scontrol ping"


@dataclass(frozen=True)
class Answer:
    """How a command ended, and what it printed."""

    code: int
    output: str
    errors: str

    @property
    def problem(self) -> str:
        """The first line that says what is wrong, without the command's name."""
        lines = [clean(line) for line in f"{self.errors}\n{self.output}".splitlines()]
        first = next((line for line in lines if line), f"it ended with the code {self.code}")
        return _FRAME.sub("", first)

    @property
    def away(self) -> bool:
        """Whether Slurm could not be asked, so that this is no answer."""
        return self.code != 0 and any(text in self.errors for text in _AWAY)


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The environment ``ours`` without what belongs to another job or to a user's habits.

    A job gets the environment of who submits it, as sbatch does by default: so it has the modules,
    virtual environment and variables with which the same study would run here. A variable that
    Slurm set in the job of a submitting shell would change the new job instead: a leaked
    ``SLURM_CPU_BIND`` makes runs several times slower. Bindings that were left out are named to the
    recorder.
    """
    found = {
        name: value
        for name, value in ours.items()
        if name in _KEPT or not name.startswith(_PREFIXES)
    }
    bound = [name for name in _BINDINGS if name in ours]
    return {**found, _LEFT_OUT: ",".join(bound)} if bound else found


def run(words: Sequence[str], script: str = "", *, seconds: float = 60.0) -> Answer:
    """Run one of Slurm's commands, with ``script`` on its standard input.

    Raises:
        NotAvailable: Slurm cannot be asked just now.
    """
    try:
        done = subprocess.run(
            words,
            input=script,
            env={**environment(os.environ), "SLURM_TIME_FORMAT": "standard"},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        text = f"{words[0]} did not answer within {seconds:g} s"
        raise NotAvailable(text, HINT_AWAY) from None
    except OSError as error:
        raise NotAvailable(
            f"{words[0]} cannot be started: {error.strerror}",
            "start it where Slurm's commands are: its login node",
        ) from error
    answer = Answer(done.returncode, done.stdout, done.stderr)
    if answer.away:
        raise NotAvailable(answer.problem, HINT_AWAY)
    return answer
