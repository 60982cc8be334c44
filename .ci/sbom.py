"""What gpuwatch is made of: a bill of materials, its licences, and whether a weakness is known.

``python .ci/sbom.py OUT.json`` looks at the packages of the Python that runs it. It exits with 1
for a vulnerability, a licence or a requirement that is not as it should be and for which
``.ci/accepted.toml`` gives no reason.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from textwrap import shorten
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = ("workloads", "parquet", "serve")
"""The extras that a user may install; the others are for who works on gpuwatch."""
_PERMISSIVE = re.compile(
    r"MIT|BSD|Apache|PSF|Python|ISC|0BSD|Zlib|CC0|Unlicense|HPND|BSL|NCSA|OFL", re.IGNORECASE
)
_WEAK = re.compile(r"LGPL|Lesser General Public|MPL|Mozilla", re.IGNORECASE)
_STRONG = re.compile(r"(?<!L)GPL|(?<!Lesser )General Public", re.IGNORECASE)


@dataclass(frozen=True)
class Installed:
    version: str
    requires: tuple[Requirement, ...]


@dataclass(frozen=True)
class Needed:
    """A package and why it is there: ``direct`` if gpuwatch itself names it."""

    name: str
    version: str
    direct: bool
    required: bool
    """Without it gpuwatch does not run; else it is of an extra."""


@dataclass(frozen=True)
class Audit:
    """What the vulnerability service said; ``known`` is ``NAME VERSION: ID`` of each."""

    known: tuple[str, ...]
    silent: tuple[str, ...]
    """Packages of which nothing was learned."""
    asked: int

    @property
    def text(self) -> str:
        """One line; never that there is no vulnerability where nobody was asked."""
        if len(self.silent) == self.asked:
            return "not audited: no vulnerability service answers from here"
        answered = self.asked - len(self.silent)
        told = f"{len(self.known)} known vulnerabilities in {answered} components"
        if self.silent:
            told += f"; not audited: {', '.join(self.silent)}"
        return told


def needed(installed: Mapping[str, Installed], base: list[str], more: list[str]) -> list[Needed]:
    """The packages that these requirements need, of those that are installed, by name.

    ``base`` are gpuwatch's own requirements, ``more`` those of its extras.
    """
    direct = {canonicalize_name(Requirement(each).name) for each in (*base, *more)}
    required = _closure(installed, base)
    everything = _closure(installed, [*base, *more])
    return [
        Needed(name, installed[name].version, name in direct, name in required)
        for name in sorted(everything)
    ]


def _closure(installed: Mapping[str, Installed], wanted: list[str]) -> set[str]:
    waiting = _asked(map(Requirement, wanted), [""])
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        key = name, frozenset(requirement.extras)
        if name in installed and key not in seen:
            seen.add(key)
            waiting += _asked(installed[name].requires, ["", *requirement.extras])
    return {name for name, _ in seen}


def _asked(requirements: Iterable[Requirement], extras: list[str]) -> list[Requirement]:
    return [
        each
        for each in requirements
        if any(each.marker is None or each.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def of_this_python() -> dict[str, Installed]:
    """All that is installed, by name; of two of a name the first counts."""
    found: dict[str, Installed] = {}
    for each in metadata.distributions():
        listed = tuple(Requirement(text) for text in each.requires or ())
        found.setdefault(canonicalize_name(each.name), Installed(each.version, listed))
    return found


def narrowed(bill: dict[str, Any], parts: Iterable[Needed]) -> dict[str, Any]:
    """The bill with these parts alone, each with its scope."""
    by_name = {part.name: part for part in parts}
    components, refs = [], set()
    for component in bill["components"]:
        part = by_name.get(canonicalize_name(component["name"]))
        if part is not None:
            scope = "required" if part.required else "optional"
            components.append({**component, "scope": scope})
            refs.add(component["bom-ref"])
    root = bill["metadata"]["component"]["bom-ref"]
    graph = [
        {**each, "dependsOn": [ref for ref in each.get("dependsOn", ()) if ref in refs]}
        for each in bill["dependencies"]
        if each["ref"] in refs | {root}
    ]
    return {**bill, "components": components, "dependencies": graph}


def licence(component: Mapping[str, Any]) -> str:
    """What a component says of its licence, in one text."""
    said = []
    for each in component.get("licenses") or ():
        one = each.get("license", {})
        text = each.get("expression") or one.get("id") or one.get("name") or ""
        said.append(text.rpartition(":: ")[2] or text)
    return next((text for text in said if text), "unknown")


def doubtful(text: str) -> bool:
    """Whether a licence may ask more of who passes gpuwatch on than to name it."""
    if re.search(r"\bOR\b", text):
        return all(doubtful(part) for part in re.split(r"\bOR\b", text))
    if _STRONG.search(text) and not _WEAK.search(text):
        return True
    return not (_PERMISSIVE.search(text) or _WEAK.search(text))


def audited(answer: str, asked: list[Needed]) -> Audit:
    """What pip-audit printed as JSON; an empty text where it failed."""
    try:
        listed = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        listed = []
    known = [
        f"{each['name']} {each['version']}: {one['id']}"
        for each in listed
        for one in each.get("vulns", ())
    ]
    heard = {canonicalize_name(each["name"]) for each in listed if "skip_reason" not in each}
    silent = [part.name for part in asked if part.name not in heard]
    return Audit(tuple(known), tuple(silent), len(asked))


def _audit(parts: list[Needed]) -> Audit:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.writelines(f"{part.name}=={part.version.partition('+')[0]}\n" for part in parts)
        listed.flush()
        done = _run(
            "-m", "pip_audit", "--requirement", listed.name, "--no-deps", "--disable-pip",
            "--format", "json", "--progress-spinner", "off",
        )  # fmt: skip
    return audited(done, parts)


def _run(*arguments: str) -> str:
    try:
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, timeout=300, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def _bill() -> dict[str, Any]:
    printed = _run(
        "-m", "cyclonedx_py", "environment", "--pyproject", str(ROOT / "pyproject.toml"),
        "--short-PURLs", sys.executable,
    )  # fmt: skip
    bill: dict[str, Any] = json.loads(printed)
    return bill


def _broken(parts: Iterable[Needed]) -> list[str]:
    """Complaints of ``pip check`` about these parts; others' packages may be seen as well."""
    names = {part.name for part in parts} | {"gpuwatch-tui"}
    lines = _run("-m", "pip", "check", "--disable-pip-version-check").splitlines()
    return [line for line in lines if canonicalize_name(line.partition(" ")[0]) in names]


def main(out: Path) -> int:
    accepted = tomllib.loads((ROOT / ".ci/accepted.toml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [each for name in OPTIONAL for each in project["optional-dependencies"][name]]
    parts = needed(of_this_python(), project["dependencies"], extras)
    bill = narrowed(_bill(), parts)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    told = {canonicalize_name(each["name"]): licence(each) for each in bill["components"]}
    told |= accepted["licences"]
    direct = [part for part in parts if part.direct]
    print(f"sbom: {len(parts)} components, {len(direct)} of them direct: {out}")
    for part in direct:
        extra = "" if part.required else ", of an extra"
        print(f"  {part.name} {part.version}, {shorten(told[part.name], 60)}{extra}")
    for required, whose in ((True, "what gpuwatch needs"), (False, "its extras")):
        counted = Counter(told[part.name] for part in parts if part.required is required)
        listed = (f"{count} {shorten(text, 60)}" for text, count in counted.most_common())
        print(f"licences of {whose}: {', '.join(listed)}")
    wrong = [
        f"the licence of {part.name} {part.version} is {told[part.name]}"
        for part in parts
        if part.required and part.name not in accepted["licences"] and doubtful(told[part.name])
    ]
    broken = _broken(parts)
    print(f"pip check: {len(broken)} broken requirements")
    audit = _audit(parts)
    print(f"audit: {audit.text}")
    for each in audit.known:
        reason = accepted["vulnerabilities"].get(each.rpartition(" ")[2])
        if reason is None:
            wrong.append(f"a known vulnerability: {each}")
        else:
            print(f"  accepted: {each}: {reason}")
    for each in (*broken, *wrong):
        print(f"error: {each}", file=sys.stderr)
    return bool(broken or wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
