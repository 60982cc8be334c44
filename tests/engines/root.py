"""Root file systems made of this machine, so that a test needs no image from elsewhere.

``make_small`` copies the test environment's Python, a shell and the usual commands, with every
shared library they need; ``make_torch`` adds torch. Both folders can be handed to any engine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
PREFIX = "usr/local"
"""Where Python stands in a root: it finds its prefix from where its executable is."""

COMMANDS = """
    sh bash env cat cp mv rm ls ln mkdir rmdir mktemp head tail tee tr cut sort uniq wc seq sleep
    yes true false kill id whoami date dd df du echo printf test touch stat chmod chown uname
    hostname nproc readlink realpath sync timeout nohup setsid nice grep sed awk find ps mount
"""
FOLDERS = "proc sys dev tmp var/tmp run etc mnt gpuwatch root home opt usr/bin usr/lib"
EMPTY_FILES = ("etc/resolv.conf", "etc/hosts", "etc/hostname", "etc/localtime")
"""Engines bind the machine's own over these, which must be there for that."""

_NOT_OF_PYTHON = """
    test idlelib site-packages dist-packages tkinter turtledemo ensurepip lib2to3 config-* *.a
"""
_TORCH_NEEDS = """
    torch torchgen torchvision functorch nvidia typing_extensions.py sympy mpmath networkx jinja2
    markupsafe fsspec filelock numpy PIL *.libs torch-* torchvision-* numpy-* pillow-*
"""
_SKIPPED_OF_TORCH = ("include", "*.a", "*.h", "*.hpp", "*.cuh", "tests", "test")
_MAPPED = """
import torch, torchvision
torch.backends.cudnn.version()
torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()
print(*{line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}, sep="\\n")
"""


def make_small(root: Path) -> Path:
    """Fill ``root`` with a system that has a shell, the usual commands and ``python3``."""
    for name in FOLDERS.split():
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    (root / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n"
    )
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc/os-release").write_text('ID=gpuwatch-test\nPRETTY_NAME="gpuwatch test root"\n')
    for name in EMPTY_FILES:
        (root / name).touch()
    programs = [Path(found) for name in COMMANDS.split() if (found := shutil.which(name))]
    for program in programs:
        _copy(program, root / "usr/bin" / program.name)
    dynamic = _python(root)
    _libraries([*programs, *dynamic], root)
    return root


def _python(root: Path) -> list[Path]:
    """Put Python into ``root``; returns what of it is linked with shared libraries."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    target = root / PREFIX / "lib" / VERSION
    shutil.copytree(
        stdlib,
        target,
        symlinks=False,
        ignore=shutil.ignore_patterns(*_NOT_OF_PYTHON.split()),
        ignore_dangling_symlinks=True,
    )
    (target / _site_packages()).mkdir()
    interpreter = Path(os.path.realpath(sys.executable))
    binaries = root / PREFIX / "bin"
    binaries.mkdir(parents=True)
    _copy(interpreter, binaries / VERSION)
    for name in ("python3", "python"):
        (binaries / name).symlink_to(VERSION)
        (root / "usr/bin" / name).symlink_to(f"/{PREFIX}/bin/{VERSION}")
    return [interpreter, *(stdlib / "lib-dynload").glob("*.so")]


def _site_packages() -> str:
    """``site-packages``, or ``dist-packages`` with Debian's own Python."""
    program = "import site; print(site.getsitepackages()[0])"
    interpreter = os.path.realpath(sys.executable)
    done = subprocess.run(
        [interpreter, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    return Path(done.stdout.strip()).name


def site_folders() -> list[str]:
    """Where this Python looks for packages, in its order."""
    return [each for each in sys.path if Path(each).name in ("site-packages", "dist-packages")]


def make_torch(root: Path, small: Path) -> Path:
    """Fill ``root`` with ``small`` and torch and torchvision of the test environment.

    On a machine without a GPU only those of NVIDIA's libraries come along that training on the CPU
    maps: the others take 1 GB and are opened when a GPU is used. Files are links to the
    originals where the file system allows; nobody may write to them.
    """
    shutil.copytree(small, root, symlinks=True, copy_function=_link, dirs_exist_ok=True)
    target = root / PREFIX / "lib" / VERSION / _site_packages()
    done = subprocess.run(
        [sys.executable, "-c", _MAPPED], capture_output=True, text=True, check=True
    )
    mapped = {os.path.realpath(line) for line in done.stdout.splitlines()}
    lean = not Path("/dev/nvidiactl").exists()
    skipped = shutil.ignore_patterns(*_SKIPPED_OF_TORCH)

    def ignore(folder: str, names: list[str]) -> set[str]:
        left_out = set(skipped(folder, names))
        if lean and "/nvidia/" in f"{folder}/":
            libraries = {name for name in names if ".so" in name}
            left_out |= {
                name
                for name in libraries
                if os.path.realpath(os.path.join(folder, name)) not in mapped
            }
        return left_out

    # Of an environment that sees another's packages some lie in each, and the first one counts.
    taken: set[str] = set()
    for site in map(Path, site_folders()):
        found = [source for pattern in _TORCH_NEEDS.split() for source in site.glob(pattern)]
        for source in found:
            if source.name.partition("-")[0] not in taken:
                if source.is_dir():
                    shutil.copytree(
                        source, target / source.name, ignore=ignore, copy_function=_link
                    )
                else:
                    _link(source, target / source.name)
        taken |= {source.name.partition("-")[0] for source in found}
    inside = [path for path in map(Path, mapped) if target.parent not in path.parents]
    _libraries([path for path in inside if path.exists()], root)
    return root


def _libraries(programs: Iterable[Path], root: Path) -> None:
    """Put the shared libraries of the system that these are linked with into ``root``.

    Libraries in a folder of their own, as those of a Python in a home, go to where the loader
    looks by itself; those in site-packages came with their package.
    """
    done = subprocess.run(
        ["ldd", *map(str, programs)], capture_output=True, text=True, check=False
    ).stdout
    needed = {Path(found) for found in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", done, re.MULTILINE)}
    beside_libc = next(path.parent for path in needed if path.name.startswith("libc."))
    standard = tuple(
        os.path.realpath(path) for path in ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
    )
    for library in needed:
        if "site-packages" in library.parts or "dist-packages" in library.parts:
            continue
        of_system = os.path.realpath(library.parent).startswith(standard)
        place = library if of_system else beside_libc / library.name
        target = root / place.relative_to("/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy(library, target)


def _copy(source: Path, target: Path) -> None:
    shutil.copy2(source, target)
    target.chmod(0o755)


def _link(source: str | Path, target: str | Path) -> str:
    """A hard link, or a copy where that cannot be."""
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copy2(source, target)
    return str(target)
