"""The batch job or pod that a recorder runs in: facts from the variables that tell it.

Sources: sbatch(1), "OUTPUT ENVIRONMENT VARIABLES"; the variables that gpuwatch gives its jobs and
pods. None of those that are kept holds a path, an account or a credential.
"""

from __future__ import annotations

from collections.abc import Mapping

_SLURM = {
    "job.id": "SLURM_JOB_ID",
    "job.partition": "SLURM_JOB_PARTITION",
    "job.qos": "SLURM_JOB_QOS",
    "job.cluster": "SLURM_CLUSTER_NAME",
    "job.nodes": "SLURM_JOB_NODELIST",
    "job.node": "SLURMD_NODENAME",
    "job.cpus": "SLURM_CPUS_ON_NODE",
    "job.cpus.per.task": "SLURM_CPUS_PER_TASK",
    "job.memory.per.node": "SLURM_MEM_PER_NODE",
    "job.memory.per.cpu": "SLURM_MEM_PER_CPU",
    "job.gpus": "SLURM_JOB_GPUS",
    "job.gpus.on.node": "SLURM_GPUS_ON_NODE",
    "job.gres": "GPUWATCH_GRES",
    "job.time.limit": "GPUWATCH_TIME_LIMIT",
    "job.cpu.bind": "SLURM_CPU_BIND",
    "job.restarts": "SLURM_RESTART_COUNT",
    "job.setup.sha256": "GPUWATCH_SETUP",
    "job.left.out": "GPUWATCH_LEFT_OUT",
}
"""Facts by the variable that tells them; memory is in MiB, generic resources and the time limit are
in Slurm's words (``gres:gpu:2``, ``1-00:00:00``)."""
POD = "GPUWATCH_POD"
"""The variable that names the pod of a study."""
_KUBERNETES = {
    "job.id": POD,
    "job.namespace": "GPUWATCH_POD_NAMESPACE",
    "job.node": "GPUWATCH_POD_NODE",
    "job.image": "GPUWATCH_POD_IMAGE",
    "job.gpu.shared": "GPUWATCH_POD_GPU_SHARED",
}
_SCHEDULERS = (("slurm", _SLURM), ("kubernetes", _KUBERNETES))
_LONGEST = 200


def fingerprint_job(variables: Mapping[str, str]) -> dict[str, str | int | float | None]:
    """Facts about the job, under ``job.``; empty outside of one."""
    for scheduler, facts in _SCHEDULERS:
        if variables.get(facts["job.id"]):
            told = {
                fact: variables[name][:_LONGEST]
                for fact, name in facts.items()
                if variables.get(name)
            }
            return {"job.scheduler": scheduler, **told}
    return {}
