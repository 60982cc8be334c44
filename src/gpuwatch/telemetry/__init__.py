"""Sources of telemetry: NVML, the CPU, the workload's process tree."""
