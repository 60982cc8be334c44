"""What is not known of sessions, and why: each reason once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import NAMES
from gpuwatch.core.metrics import CATALOGUE

_STARTING = ("launch", "import", "model", "first_step")


def missing(sessions: Sequence[Summary]) -> dict[str, list[str]]:
    """Each reason why something is not known, with what it concerns.

    A reason that does not hold for all sessions names those for which it does.
    """
    reasons: dict[str, dict[str, None]] = {}
    holds: dict[str, dict[str, None]] = {}
    for session in sessions:
        label = str(session.environment.get("label") or session.label)
        for name, why in _unknown(session).items():
            reasons.setdefault(why, {})[name] = None
            holds.setdefault(why, {})[f"{label} {session.id}"] = None
    told = {}
    for why, names in reasons.items():
        some = len(holds[why]) < len({session.id for session in sessions})
        labels = Counter(key.rpartition(" ")[0] for key in holds[why])
        of = ", ".join(f"{e} ({n} runs)" if n > 1 else e for e, n in labels.items())
        told[f"{why} ({of})" if some else why] = _together(list(names))
    return told


def _unknown(session: Summary) -> dict[str, str]:
    """What is not known of a session that could be known of such a one, and why."""
    contained = session.environment.get("kind") in ("docker", "apptainer")
    unknown = {
        name: each.reason
        for name, each in session.metrics.items()
        if each.reason and (contained or not name.startswith("container."))
    }
    if session.workload.get("kind") == "import":
        return unknown
    if session.steps.reason:
        unknown["step time"] = session.steps.reason
    if session.steps.count:
        if not any(getattr(session.timing, f"{each}_seconds") for each in _STARTING):
            unknown["launch, import, first step"] = (
                "the program prints no `started` and `startup` lines (docs/step-lines.md)"
            )
        unknown |= {
            NAMES[key]: last.figure.reason
            for key, last in session.training.step.all.items()
            if last.figure.reason
        }
    # Where no GPU is seen, the processes' figures lack for the same reason in fewer words.
    longest = sorted(set(unknown.values()), key=len, reverse=True)
    return {
        name: next(each for each in longest if each == why or each.endswith(f": {why}"))
        for name, why in unknown.items()
    }


def _together(names: list[str]) -> list[str]:
    """``hw.gpu.*`` for all metrics of the catalogue that begin so; likewise other families."""
    for family in ("", "hw.gpu.", "process.gpu.", "container."):
        whole = [name for name in CATALOGUE if name.startswith(family)]
        if not family:
            whole = [name for name in whole if not name.startswith("container.")]
        if set(whole) <= set(names):
            told = f"{family}*" if family else "every metric"
            names = [told, *(name for name in names if name not in whole)]
    return names
