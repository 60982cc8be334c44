from __future__ import annotations

import zipfile
from hashlib import sha256
from pathlib import Path


def build(target: Path) -> str:
    with zipfile.ZipFile(target, "w") as z:
        z.writestr("sitecustomize.py", "OURS = True\n")
    target.chmod(0o444)
    return sha256(target.read_bytes()).hexdigest()
