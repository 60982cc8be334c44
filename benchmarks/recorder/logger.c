/* Stands for `nvidia-smi --query-gpu=... --format=csv -lms N`: asks each GPU for eight readings, writes a line of each
 * and rests. NVIDIA's own program is not used, since it wants more of the driver than the stand-in has.
 *
 *   logger MILLISECONDS FILE
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory;
#define FUNCTION(name, ...) int (*name)(__VA_ARGS__) = (int (*)(__VA_ARGS__))dlsym(nvml, #name)

int main(int count, char **arguments) {
    if (count != 3) return 2;
    long rest_ms = atol(arguments[1]);
    FILE *out = fopen(arguments[2], "w");
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!out || !nvml) return 1;
    FUNCTION(nvmlInit_v2, void);
    FUNCTION(nvmlDeviceGetCount_v2, unsigned *);
    FUNCTION(nvmlDeviceGetHandleByIndex_v2, unsigned, void **);
    FUNCTION(nvmlDeviceGetUtilizationRates, void *, unsigned *);
    FUNCTION(nvmlDeviceGetMemoryInfo_v2, void *, Memory *);
    FUNCTION(nvmlDeviceGetPowerUsage, void *, unsigned *);
    FUNCTION(nvmlDeviceGetTemperature, void *, unsigned, unsigned *);
    FUNCTION(nvmlDeviceGetClockInfo, void *, unsigned, unsigned *);
    unsigned gpus = 0;
    void *gpu[16];
    if (nvmlInit_v2() || nvmlDeviceGetCount_v2(&gpus) || gpus > 16) return 1;
    for (unsigned i = 0; i < gpus; i++)
        if (nvmlDeviceGetHandleByIndex_v2(i, &gpu[i])) return 1;
    for (;;) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        for (unsigned i = 0; i < gpus; i++) {
            unsigned rates[2] = {0}, power = 0, temperature = 0, sm = 0, memory_clock = 0;
            Memory memory = {.version = sizeof memory | 2u << 24};
            nvmlDeviceGetUtilizationRates(gpu[i], rates);
            nvmlDeviceGetMemoryInfo_v2(gpu[i], &memory);
            nvmlDeviceGetPowerUsage(gpu[i], &power);
            nvmlDeviceGetTemperature(gpu[i], 0, &temperature);
            nvmlDeviceGetClockInfo(gpu[i], 1, &sm);
            nvmlDeviceGetClockInfo(gpu[i], 2, &memory_clock);
            fprintf(out, "%lld.%09ld, %u, %u, %u, %llu, %u, %u, %u, %u\n", (long long)now.tv_sec, now.tv_nsec, i,
                    rates[0], rates[1], memory.used, power, temperature, sm, memory_clock);
        }
        fflush(out);
        nanosleep(&(struct timespec){rest_ms / 1000, rest_ms % 1000 * 1000000}, NULL);
    }
}
