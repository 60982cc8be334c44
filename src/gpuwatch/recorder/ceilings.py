"""The measured ceilings of a run's devices, copied into its session.

A session is read on other machines and after a new calibration, so it holds what was measured on
its own devices, with its own driver and torch. Where nothing fits, nothing is written.
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
"""Why a device that was calibrated has no ceilings in this session: ``reason`` and ``hint``."""


class RunCeilings:
    """Looks for the documents of a recording's devices whenever the run tells more of itself."""

    def __init__(self, devices: Sequence[Device], known: Mapping[str, JSON]) -> None:
        """``known`` is the session's meta, also as a recorder before this one left it."""
        self._devices = devices
        self._waits = (known.get("workload") or {}).get("kind") == "workload"
        self._written = {key: known.get(key) for key in (KEY, MISSING)}
        self._told: object = None

    def rows(self, intake: Intake) -> list[Row]:
        """The row of the session's ``ceilings`` when they are known, and when they change.

        One of our workloads always tells its torch and device, and they are waited for. Other
        programs may tell less: then every device counts, and a document that alone fits what is
        known.
        """
        told = (intake.versions, intake.device_type, tuple(intake.device_uuids))
        if told == self._told or (self._waits and not (told[0] and told[1])):
            return []
        if not intake.versions and self._written[KEY] is not None:
            return []
        self._told = told
        known = ceilings.documents()
        found: list[Document] = []
        without: list[AmbiguousCeilings] = []
        for device in self._chosen(intake):
            sought = _sought(device, intake.versions)
            document = ceilings.matching(known, sought) or ceilings.of_another_torch(known, sought)
            undecided = None if document is not None else ceilings.undecided(known, sought)
            found += [document] if document is not None else []
            without += [undecided] if undecided is not None else []
        missing = {
            "reason": "; ".join(dict.fromkeys(each.reason for each in without)),
            "hint": "; ".join(dict.fromkeys(each.hint for each in without)),
        }
        return [
            *self._row(KEY, found[0] if len(found) == 1 else found or None),
            *self._row(MISSING, missing if without else None),
        ]

    def _row(self, key: str, value: JSON) -> list[Row]:
        if value == self._written[key]:
            return []
        self._written[key] = value
        return [without_meta(key) if value is None else meta(key, value)]

    def _chosen(self, intake: Intake) -> Sequence[Device]:
        """The devices that the run says it uses; all where it does not say."""
        known = [device for device in self._devices if device.kind in ("cpu", "gpu")]
        if intake.device_type == "cpu":
            return [device for device in known if device.kind == "cpu"]
        if intake.device_uuids:
            return [device for device in known if device.uuid in intake.device_uuids]
        if intake.device_type == "cuda":
            return [device for device in known if device.kind == "gpu"]
        return known


def _sought(device: Device, versions: Mapping[str, JSON]) -> CeilingQuery:
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
