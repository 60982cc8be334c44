"""What CI says of gpuwatch's dependencies: never more than it learned."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "sbom.py"


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    pytest.importorskip("packaging")
    spec = importlib.util.spec_from_file_location("gpuwatch_sbom", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def installed(sbom: ModuleType, **packages: list[str]) -> dict[str, Any]:
    return {
        name: sbom.Installed("1.0", tuple(map(sbom.Requirement, requires)))
        for name, requires in packages.items()
    }


def test_the_parts_are_those_of_gpuwatch_and_its_extras_and_nothing_of_who_works_on_it(
    sbom: ModuleType,
) -> None:
    there = installed(
        sbom,
        screen=["paint>=1", "linter; extra == 'dev'"],
        paint=[],
        tables=["screen", "speed; python_version < '3'"],
        speed=[],
        linter=[],
    )
    parts = sbom.needed(there, ["screen[fast]>=2"], ["Tables", "absent"])
    assert [(each.name, each.direct, each.required) for each in parts] == [
        ("paint", False, True),
        ("screen", True, True),
        ("tables", True, False),
    ]


def asked(sbom: ModuleType, *names: str) -> list[Any]:
    return [sbom.Needed(name, "1.0", True, True) for name in names]


def said(**packages: object) -> str:
    listed = [{"name": name, "version": "1.0", **found} for name, found in packages.items()]  # type: ignore[dict-item]
    return json.dumps({"dependencies": listed, "fixes": []})


def test_an_audit_that_nobody_answered_is_no_audit(sbom: ModuleType) -> None:
    for answer in ("", "no json", "[]", said(a={"skip_reason": "not found"})):
        audit = sbom.audited(answer, asked(sbom, "a", "b"))
        assert audit.text == "not audited: no vulnerability service answers from here"


def test_an_audit_tells_what_is_known_and_of_what_nothing_is(sbom: ModuleType) -> None:
    answer = said(
        a={"vulns": [{"id": "PYSEC-2026-1", "fix_versions": []}]},
        b={"vulns": []},
        c={"skip_reason": "not found"},
    )
    audit = sbom.audited(answer, asked(sbom, "a", "b", "c"))
    assert audit.known == ("a 1.0: PYSEC-2026-1",)
    assert audit.text == "1 known vulnerabilities in 2 components; not audited: c"


@pytest.mark.parametrize(
    ("licence", "doubt"),
    [
        ("MIT", False),
        ("BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0", False),
        ("GNU Lesser General Public License v3 (LGPLv3)", False),
        ("MPL-2.0", False),
        ("GPL-2.0-only OR MIT", False),
        ("GPL-3.0-or-later", True),
        ("AGPL-3.0", True),
        ("MIT AND GPL-2.0-only", True),
        ("LicenseRef-NVIDIA-Proprietary", True),
        ("unknown", True),
    ],
)
def test_a_licence_is_in_doubt_unless_it_is_known_to_ask_little(
    sbom: ModuleType, licence: str, doubt: bool
) -> None:
    assert sbom.doubtful(licence) is doubt
