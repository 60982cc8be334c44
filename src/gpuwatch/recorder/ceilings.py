"""The measured ceilings of a run's devices, copied into its session.

Sessions are read on other machines and after a new calibration, so each holds the ceilings of its
own devices, driver and torch. Nothing is written if nothing matches.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from gpuwatch.core import ceilings
from gpuwatch.core.ceilings import AmbiguousCeilings, CeilingQuery, Document
from gpuwatch.core.models import JSON
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.session.writing.statements import Row, meta, without_meta
from gpuwatch.telemetry.base import Device

KEY = "ceilings"
MISSING = "ceilings_missing"
"""Why a calibrated device has no ceilings in this session: ``reason`` and ``hint``."""


class RunCeilings:
    """Looks up the ceilings of a recording's devices whenever the run reports more about itself."""

    def __init__(self, devices: Sequence[Device], known: Mapping[str, JSON]) -> None:
        """``known``: the session's meta, perhaps left by an earlier recorder."""
        self._devices = devices
        self._waits = (known.get("workload") or {}).get("kind") == "workload"
        self._written = {key: known.get(key) for key in (KEY, MISSING)}
        self._reported: object = None

    def rows(self, intake: Intake) -> list[Row]:
        """Rows for the session's ``ceilings``, when they become known or change.

        A built-in workload always reports its torch and device, so wait for them. Other programs
        may report less: then all devices count, each with the only document that matches what is
        known.
        """
        reported = (intake.versions, intake.device_type, tuple(intake.device_uuids))
        if reported == self._reported or (self._waits and not (reported[0] and reported[1])):
            return []
        if not intake.versions and self._written[KEY] is not None:
            return []
        self._reported = reported
        stored = ceilings.documents()
        documents: list[Document] = []
        ambiguous: list[AmbiguousCeilings] = []
        for device in self._reported_devices(intake):
            query = _query(device, intake.versions)
            document = ceilings.matching(stored, query) or ceilings.matching_except_torch(
                stored, query
            )
            ambiguity = None if document is not None else ceilings.undecided(stored, query)
            documents += [document] if document is not None else []
            ambiguous += [ambiguity] if ambiguity is not None else []
        missing = {
            "reason": "; ".join(dict.fromkeys(problem.reason for problem in ambiguous)),
            "hint": "; ".join(dict.fromkeys(problem.hint for problem in ambiguous)),
        }
        return [
            *self._row(KEY, documents[0] if len(documents) == 1 else documents or None),
            *self._row(MISSING, missing if ambiguous else None),
        ]

    def _row(self, key: str, value: JSON) -> list[Row]:
        if value == self._written[key]:
            return []
        self._written[key] = value
        return [without_meta(key) if value is None else meta(key, value)]

    def _reported_devices(self, intake: Intake) -> Sequence[Device]:
        """The devices that the run reports to use; all if it reports none."""
        known = [device for device in self._devices if device.kind in ("cpu", "gpu")]
        if intake.device_type == "cpu":
            return [device for device in known if device.kind == "cpu"]
        if intake.device_uuids:
            return [device for device in known if device.uuid in intake.device_uuids]
        if intake.device_type == "cuda":
            return [device for device in known if device.kind == "gpu"]
        return known


def _query(device: Device, versions: Mapping[str, JSON]) -> CeilingQuery:
    driver = device.attributes.get("driver.version")
    torch, threads = versions.get("torch"), str(versions.get("threads") or "")
    return CeilingQuery(
        device.kind,
        device.name,
        device.uuid,
        host=socket.gethostname(),
        driver=None if driver is None else str(driver),
        torch=None if torch is None else str(torch),
        threads=int(threads) if threads.isdecimal() else None,
    )
