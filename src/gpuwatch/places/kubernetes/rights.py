"""What a user must be allowed in the namespace."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, Problem, mapping
from gpuwatch.places.kubernetes.kubectl import Kubectl

_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True)
class Right:
    """One thing to do with one kind of object."""

    verb: str
    resource: str
    """With its part, if it has one: ``pods/exec``."""
    group: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


NEEDED = (
    Right("create", "jobs", "batch"),
    Right("list", "jobs", "batch"),
    Right("delete", "jobs", "batch"),
    Right("create", "configmaps"),
    Right("list", "pods"),
    Right("get", "pods"),
    Right("create", "pods/exec"),
)
USEFUL = (Right("list", "events"),)
"""Without it some reasons are missing."""


def lacking(kubectl: Kubectl) -> list[Problem]:
    """The problem of each right that is needed and not given.

    Raises:
        Denied, NotAvailable: the cluster does not tell.
    """
    given = allowed(kubectl, NEEDED)
    return [
        Problem(
            "kubernetes-rights",
            f"you may not {right} in the namespace {kubectl.namespace}",
            "ask for a role with: " + ", ".join(map(str, NEEDED)),
        )
        for right in NEEDED
        if not given[right]
    ]


def allowed(kubectl: Kubectl, asked: tuple[Right, ...]) -> dict[Right, bool]:
    """Whether this user has each right, as the API server says.

    Raises:
        Denied, NotAvailable: the cluster does not tell.
    """

    def one(right: Right) -> bool:
        answer = kubectl.create(_REVIEW, _review(right, kubectl.namespace))
        return mapping(answer.get("status")).get("allowed") is True

    with ThreadPoolExecutor(len(asked)) as several:
        return dict(zip(asked, several.map(one, asked), strict=True))


def _review(right: Right, namespace: str | None) -> Mapping[str, JSON]:
    resource, _, part = right.resource.partition("/")
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "namespace": namespace,
                "verb": right.verb,
                "group": right.group,
                "resource": resource,
                "subresource": part,
            }
        },
    }
