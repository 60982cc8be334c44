"""One parser for lists of keys and values: brackets and quotes hold commas together."""

from __future__ import annotations

import pytest

from gpuwatch.core.errors import UsageError
from gpuwatch.core.key_values import parse

SPELLINGS = {
    "ssh": [("ssh", None)],
    "ssh=gpu1": [("ssh", "gpu1")],
    "ssh=me@gpu1": [("ssh", "me@gpu1")],
    "ssh=": [("ssh", "")],
    "": [("", None)],
    "=": [("", "")],
    "=x": [("", "x")],
    "slurm,partition=gpu": [("slurm", None), ("partition", "gpu")],
    "slurm,exclusive": [("slurm", None), ("exclusive", None)],
    "slurm,exclusive=": [("slurm", None), ("exclusive", "")],
    "slurm,exclusive=user": [("slurm", None), ("exclusive", "user")],
    "slurm,": [("slurm", None), ("", None)],
    "slurm,,time=30": [("slurm", None), ("", None), ("time", "30")],
    "slurm,time=1-12:00:00": [("slurm", None), ("time", "1-12:00:00")],
    "slurm,gres=gpu:1": [("slurm", None), ("gres", "gpu:1")],
    "slurm,gres=gpu:a100:2": [("slurm", None), ("gres", "gpu:a100:2")],
    "slurm,nodelist=n[1,3-5]": [("slurm", None), ("nodelist", "n[1,3-5]")],
    "slurm,nodelist=n[1,3],time=5": [("slurm", None), ("nodelist", "n[1,3]"), ("time", "5")],
    "slurm,nodelist=a[1,2]b[3,4]": [("slurm", None), ("nodelist", "a[1,2]b[3,4]")],
    "slurm,x=[[1,2],3],y=4": [("slurm", None), ("x", "[[1,2],3]"), ("y", "4")],
    "slurm,x=1]": [("slurm", None), ("x", "1]")],
    "slurm,x=1],y=2": [("slurm", None), ("x", "1]"), ("y", "2")],
    "slurm,constraint=a100|h100": [("slurm", None), ("constraint", "a100|h100")],
    "slurm,constraint=(a&b)|c": [("slurm", None), ("constraint", "(a&b)|c")],
    "slurm,constraint=[a*2&b*4]": [("slurm", None), ("constraint", "[a*2&b*4]")],
    'slurm,nodelist="n1,n2"': [("slurm", None), ("nodelist", "n1,n2")],
    "slurm,nodelist='n1,n2',time=5": [("slurm", None), ("nodelist", "n1,n2"), ("time", "5")],
    'slurm,comment="a, b=c"': [("slurm", None), ("comment", "a, b=c")],
    'slurm,comment="it\'s"': [("slurm", None), ("comment", "it's")],
    "slurm,comment=it's": [("slurm", None), ("comment", "it's")],
    "slurm,comment='say \"x\"'": [("slurm", None), ("comment", 'say "x"')],
    'slurm,comment="a"b"': [("slurm", None), ("comment", 'a"b')],
    'slurm,comment=""': [("slurm", None), ("comment", "")],
    'slurm,comment=" x "': [("slurm", None), ("comment", " x ")],
    'slurm,comment="[",time=5': [("slurm", None), ("comment", "["), ("time", "5")],
    'slurm,comment=a"b,c"': [("slurm", None), ("comment", 'a"b'), ('c"', None)],
    "bare,set=A=1,set=B=2": [("bare", None), ("set", "A=1"), ("set", "B=2")],
    'bare,set=A="1,2",label=x': [("bare", None), ("set", "A=1,2"), ("label", "x")],
    "bare,set=A=": [("bare", None), ("set", "A=")],
    "docker=nvcr.io/nvidia/pytorch:24.05-py3,shm=8g": [
        ("docker", "nvcr.io/nvidia/pytorch:24.05-py3"),
        ("shm", "8g"),
    ],
    "docker,mount=/data:/data:rw": [("docker", None), ("mount", "/data:/data:rw")],
    "bare,set=FLAGS=--a=1 --b=2": [("bare", None), ("set", "FLAGS=--a=1 --b=2")],
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_spellings(text: str) -> None:
    assert [(item.key, item.value) for item in parse(text)] == SPELLINGS[text]


@pytest.mark.parametrize("text", ["slurm,nodelist=n[1", 'slurm,comment="a', "slurm,comment='a\",b"])
def test_what_has_no_end_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="has no"):
        parse(text)
