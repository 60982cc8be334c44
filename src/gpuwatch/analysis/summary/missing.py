"""What is unknown about sessions, grouped by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpuwatch.analysis.summary.identity import used_gpus
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import NAMES
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.metrics import CATALOGUE, label

_FAMILIES = {
    "": "every metric",
    "hw.gpu.": "every GPU metric",
    "process.gpu.": "the workload's use of the GPU",
    "container.": "every container metric",
}
_STARTING = ("launch", "import", "model", "first_step")


def missing(sessions: Sequence[Summary]) -> dict[str, list[str]]:
    """The unknown quantities by reason.

    A reason that applies only to some sessions names them.
    """
    found = grouped(
        (reason, (name, session))
        for session in sessions
        for name, reason in _unknown(session).items()
    )
    labels = {each.id: str(each.environment.get("label") or each.label) for each in sessions}
    quantities = {}
    for reason, told in found.items():
        affected = Counter(labels[of] for of in dict.fromkeys(of.id for _, of in told))
        some = affected.total() < len(labels)
        which = f" ({with_counts(affected, Counter(labels.values()))})" if some else ""
        quantities[f"{reason}{which}"] = _together(list(dict.fromkeys(name for name, _ in told)))
    return quantities


def with_counts(labels: Counter[str], runs: Counter[str]) -> str:
    """``bare (3 of 7 runs), docker``; ``runs``: how many each label has in all."""
    return ", ".join(
        f"{each} ({n} of {runs[each]} runs)"
        if n < runs[each]
        else f"{each} ({n} runs)"
        if n > 1
        else each
        for each, n in labels.items()
    )


def missing_notes(sessions: Sequence[Summary]) -> list[str]:
    """A sentence for each reason: ``unavailable: GPU power: REASON``; then what some GPUs lack."""
    some = grouped(
        ((of.reason, name), gpu.id)
        for session in sessions
        for gpu in used_gpus(session)
        for name, of in gpu.metrics.items()
        if of.reason and name in session.metrics and not session.metrics[name].reason
    )
    lacking = grouped(
        ((why, ", ".join(dict.fromkeys(gpus))), name) for (why, name), gpus in some.items()
    )
    told = [(", ".join(names), why) for why, names in missing(sessions).items()]
    told += [
        (f"{', '.join(_together(names))} of {of}", why) for (why, of), names in lacking.items()
    ]
    return [f"unavailable: {what}: {why}" for what, why in told]


def _unknown(session: Summary) -> dict[str, str]:
    """Reasons, by quantity, for what is unknown but could be known for such a session."""
    contained = session.environment.get("kind") in ("docker", "apptainer")
    unknown = {
        name: statistic.reason
        for name, statistic in session.metrics.items()
        if statistic.reason and (contained or not name.startswith("container."))
    }
    if session.workload.get("kind") == "import":
        return unknown
    if session.steps.reason:
        unknown["step time"] = session.steps.reason
    if session.steps.count:
        if not any(getattr(session.timing, f"{stage}_seconds") for stage in _STARTING):
            unknown["launch, import, first step"] = (
                "the program prints no `started` and `startup` lines (`gpuwatch run --help`)"
            )
        unknown |= {
            NAMES[key]: last.figure.reason
            for key, last in session.training.step.all.items()
            if last.figure.reason
        }
    # Without a GPU, process figures are missing for the same reason in fewer words: join them.
    longest = sorted(set(unknown.values()), key=len, reverse=True)
    return {
        name: next(text for text in longest if text == reason or text.endswith(f": {reason}"))
        for name, reason in unknown.items()
    }


def _together(names: list[str]) -> list[str]:
    """``names`` for people, with complete families joined, such as ``every GPU metric``."""
    for family, joined in _FAMILIES.items():
        members = [name for name in CATALOGUE if name.startswith(family)]
        if not family:
            members = [name for name in members if not name.startswith("container.")]
        if set(members) <= set(names):
            names = [joined, *(name for name in names if name not in members)]
    return [label(name) if "." in name else name for name in names]
