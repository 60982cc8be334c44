/* What nvtop looks for in libnvidia-ml.so.1 beside the calls that tests/fake_nvml answers. */
#include "fake_nvml.h"

#define CONSTANT(function, value)            \
    int function(Device *d, unsigned *out) { \
        ENTER_GPU(d);                        \
        *out = (value);                      \
        return SUCCESS;                      \
    }

CONSTANT(nvmlDeviceGetMaxPcieLinkGeneration, 5)
CONSTANT(nvmlDeviceGetMaxPcieLinkWidth, 16)

/* The library's own newer versions, under the names that nvtop demands first. */
int nvmlDeviceGetCount_v2(unsigned *out);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out);
int nvmlDeviceGetCount(unsigned *out) { return nvmlDeviceGetCount_v2(out); }
int nvmlDeviceGetHandleByIndex(unsigned index, Device **out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }

static int none(Device *d, unsigned *count) {
    ENTER_GPU(d);
    *count = 0;
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses(Device *d, unsigned *count, void *out) { (void)out; return none(d, count); }
int nvmlDeviceGetGraphicsRunningProcesses(Device *d, unsigned *count, void *out) { (void)out; return none(d, count); }
