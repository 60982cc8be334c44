"""Stand-ins of ``gcloud`` and ``kubectl`` for ``recipes/gke.sh``, which no cloud has run.

They are one program. It knows the commands and flags that gcloud's reference lists and that the
script uses, and refuses any other, as gcloud does; what it answers has the form of the reference.
Its cloud is a file: ``cloud.json`` in ``$STAND_IN``, beside ``calls``, one command line each.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

EVERYWHERE = {"--project", "--format", "--flatten", "--quiet"}
KNOWN: dict[str, set[str]] = {
    "auth list": {"--filter"},
    "config get-value": set(),
    "container clusters list": {"--filter"},
    "container clusters create": {
        "--zone",
        "--num-nodes",
        "--machine-type",
        "--disk-size",
        "--labels",
    },
    "container clusters delete": {"--zone"},
    "container clusters get-credentials": {"--zone"},
    "container node-pools list": {"--cluster", "--zone"},
    "container node-pools delete": {"--cluster", "--zone"},
    "container node-pools create": {
        "--cluster",
        "--zone",
        "--machine-type",
        "--accelerator",
        "--num-nodes",
        "--enable-autoscaling",
        "--min-nodes",
        "--max-nodes",
        "--disk-size",
        "--spot",
    },
    "compute project-info describe": set(),
    "compute regions list": set(),
    "compute accelerator-types list": {"--filter"},
    "compute machine-types list": {"--zones"},
}
"""The flags of each command, of gcloud 528."""
WITHOUT_VALUE = {"--quiet", "--enable-autoscaling", "--spot"}


def quota(**of: tuple[float, float]) -> dict[str, tuple[float, float]]:
    """Limit and usage of each metric of a region."""
    names = {"t4": "NVIDIA_T4_GPUS", "l4": "NVIDIA_L4_GPUS", "spot": "PREEMPTIBLE_NVIDIA_T4_GPUS"}
    return {names[key]: value for key, value in of.items()}


EMPTY: dict[str, Any] = {
    "account": "me@example.com",
    "project": "lab-1",
    "clusters": {},
    "context": "mine",
    "contexts": ["mine"],
    "offered": {
        "nvidia-tesla-t4": ["us-west1-b", "us-central1-a", "europe-west4-b"],
        "nvidia-l4": ["us-central1-a", "us-central1-c"],
        "nvidia-h100-80gb": ["us-central1-a"],
    },
    "quota": {
        "us-west1": quota(t4=(1.0, 1.0), l4=(0.0, 0.0), spot=(0.0, 0.0)),
        "us-central1": quota(t4=(2.0, 1.0), l4=(8.0, 0.0), spot=(1.0, 1.0)),
        "europe-west4": quota(t4=(4.0, 0.0), l4=(0.0, 0.0), spot=(1.0, 0.0)),
    },
    "all_regions": [8.0, 0.0],
    "machines": [
        ["g2-standard-8", 8, "nvidia-l4", 1],
        ["g2-standard-4", 4, "nvidia-l4", 1],
        ["g2-standard-24", 24, "nvidia-l4", 2],
    ],
    "fails": "",
    "hangs": False,
    "stockout": False,
    "driver": True,
}


def main() -> None:
    folder = Path(os.environ["STAND_IN"])
    program = Path(sys.argv[0]).name
    with (folder / "calls").open("a") as calls:
        calls.write(json.dumps([program, *sys.argv[1:]]) + "\n")
    cloud = json.loads((folder / "cloud.json").read_text())
    answer = kubectl if program == "kubectl" else gcloud
    try:
        for line in answer(cloud, sys.argv[1:]):
            print(line)
    finally:
        (folder / "cloud.json").write_text(json.dumps(cloud))


def gcloud(cloud: dict[str, Any], words: list[str]) -> list[str]:
    plain = [word for word in words if not word.startswith("-")]
    size = 3 if plain[0] in ("container", "compute") else 2
    command = " ".join(plain[:size])
    if command not in KNOWN:
        sys.exit(f"ERROR: (gcloud) Invalid choice: '{command}'.")
    flags = {}
    for word in (word for word in words if word.startswith("-")):
        flag, equals, value = word.partition("=")
        if flag not in KNOWN[command] | EVERYWHERE or bool(equals) == (flag in WITHOUT_VALUE):
            sys.exit(f"ERROR: (gcloud.{command}) unrecognized arguments: {word}")
        flags[flag] = value
    if cloud["fails"] and re.search(cloud["fails"], " ".join(words)):
        sys.exit(f"ERROR: (gcloud.{command}) ResponseError: code=403")
    return list(answers(cloud, command, plain[size:], flags))


def answers(
    cloud: dict[str, Any], command: str, names: list[str], flags: dict[str, str]
) -> list[str]:
    """What gcloud prints, in the ``--format`` that the script asks for."""
    if command.startswith(("container", "compute")) and flags["--project"] != cloud["project"]:
        sys.exit("ERROR: no such project")
    clusters, zone, area = cloud["clusters"], flags.get("--zone"), command.split()[0]
    name = flags.get("--cluster") or (names[0] if names else "")
    if command == "auth list":
        return [cloud["account"]] if cloud["account"] else []
    if command == "config get-value":
        return [cloud["project"]]
    if command == "compute project-info describe":
        return [f"lab-1,GPUS_ALL_REGIONS,{cloud['all_regions'][0]},{cloud['all_regions'][1]}"]
    if command == "compute regions list":
        return [
            f"{region},{metric},{limit},{usage}"
            for region, of in cloud["quota"].items()
            for metric, (limit, usage) in of.items()
        ]
    if command == "compute accelerator-types list":
        return list(cloud["offered"].get(only(flags["--filter"])["name"], []))
    if command == "compute machine-types list":
        return [",".join(map(str, machine)) for machine in cloud["machines"]]
    if command == "container clusters list":
        wanted = only(flags["--filter"])
        found = [
            each
            for each in clusters.values()
            if all(
                {"name": each["name"], "location": each["zone"], **each["labels"]}.get(
                    key.removeprefix("resourceLabels.")
                )
                == value
                for key, value in wanted.items()
            )
        ]
        if flags["--format"] == "value(name)":
            return [each["name"] for each in found]
        return [f"{each['zone']},{each['labels'].get('gpuwatch', '')}" for each in found]
    if command == "container clusters create":
        labels = dict(label.split("=") for label in flags["--labels"].split(","))
        clusters[name] = {"name": name, "zone": zone, "labels": labels, "pools": ["default-pool"]}
        return ["NAME  LOCATION", f"{name}  {zone}"]
    assert area == "container"
    if name not in clusters or clusters[name]["zone"] != zone:
        sys.exit(f"ERROR: no such cluster {name} in {zone}")
    if command == "container clusters delete":
        del clusters[name]
    elif command == "container clusters get-credentials":
        cloud["context"] = f"gke_{cloud['project']}_{zone}_{name}"
        cloud["contexts"].append(cloud["context"])
    elif command == "container node-pools list":
        return list(clusters[name]["pools"])
    elif command == "container node-pools create":
        clusters[name]["pools"].append(names[0])
        if cloud["hangs"]:
            print("it takes minutes", file=sys.stderr, flush=True)
            signal.pause()
        if cloud["stockout"]:
            sys.exit("ERROR: ZONE_RESOURCE_POOL_EXHAUSTED")
    elif command == "container node-pools delete":
        clusters[name]["pools"].remove(names[0])
    return []


def only(expression: str) -> dict[str, str]:
    """The keys that a filter compares, and with what: a regular expression each, which compares the
    whole value. gcloud's ``=`` will match words of a value."""
    terms = (term.split("~") for term in expression.split(" AND "))
    return {key: value.removeprefix("^").removesuffix("$") for key, value in terms}


def kubectl(cloud: dict[str, Any], words: list[str]) -> list[str]:
    if words == ["config", "current-context"]:
        if not cloud["context"]:
            sys.exit("error: current-context is not set")
        return [cloud["context"]]
    if words[:2] == ["config", "use-context"]:
        cloud["context"] = words[2]
    elif words[:2] == ["config", "delete-context"]:
        cloud["contexts"].remove(words[2])
    elif words[0].startswith("--context=") and words[1:3] == ["get", "nodes"]:
        assert words[0].removeprefix("--context=") in cloud["contexts"]
        return ["8"] if cloud["driver"] else []
    elif words[0] != "config" or words[1] not in ("delete-cluster", "delete-user"):
        sys.exit(f"error: unknown command {words}")
    return []


if __name__ == "__main__":
    main()
