from gpuwatch.telemetry.host.job import fingerprint_job


def test_a_job_of_slurm_is_told_without_accounts_and_paths() -> None:
    variables = {
        "SLURM_JOB_ID": "17",
        "SLURM_JOB_PARTITION": "gpu",
        "SLURMD_NODENAME": "n1",
        "SLURM_CPUS_ON_NODE": "4",
        "SLURM_CPU_BIND": "quiet,mask_cpu:0x3",
        "GPUWATCH_TIME_LIMIT": "30:00",
        "GPUWATCH_GRES": "",
        "SLURM_JOB_ACCOUNT": "secret",
        "SLURM_SUBMIT_DIR": "/home/me",
        "HOME": "/home/me",
    }
    assert fingerprint_job(variables) == {
        "job.scheduler": "slurm",
        "job.id": "17",
        "job.partition": "gpu",
        "job.node": "n1",
        "job.cpus": "4",
        "job.time.limit": "30:00",
        "job.cpu.bind": "quiet,mask_cpu:0x3",
    }


def test_a_pod_of_ours_is_told() -> None:
    variables = {
        "GPUWATCH_POD": "gpuwatch-1-x",
        "GPUWATCH_POD_NODE": "n1",
        "GPUWATCH_POD_NAMESPACE": "team",
        "GPUWATCH_POD_IMAGE": "my/image:1",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    }
    assert fingerprint_job(variables) == {
        "job.scheduler": "kubernetes",
        "job.id": "gpuwatch-1-x",
        "job.namespace": "team",
        "job.node": "n1",
        "job.image": "my/image:1",
    }


def test_outside_of_a_job_there_is_none() -> None:
    assert fingerprint_job({"SLURM_CONF": "/etc/slurm.conf", "SLURM_JOB_ID": ""}) == {}
