/* The stand-in as libcuda.so.1: which GPUs CUDA enumerates in this process, in its own order.
 *
 *   cuda_order 1,0                                the GPUs in CUDA's order: needed, else cuInit fails
 *
 * Of CUDA_VISIBLE_DEVICES it reads numbers: the first that is none, or no GPU's, ends the list. CUDA_DEVICE_ORDER is not
 * read. Written after the CUDA driver API's documents; no real libcuda was seen beside it.
 */
#include "fake_nvml.h"

enum { CUDA_INVALID_VALUE = 1, CUDA_NOT_INITIALIZED = 3, CUDA_NO_DEVICE = 100, CUDA_UNKNOWN = 999 };
static int visible[MAX_GPUS], count = -1;

static int listed(const char *list, int *out) {
    int n = 0;
    while (list && *list && n < MAX_GPUS) {
        char *end;
        long number = strtol(list, &end, 10);
        if (end == list || number < 0) break;
        out[n++] = (int)number;
        list = end + (*end == ',');
    }
    return n;
}

int cuInit(unsigned flags) {
    State *s = state();
    const char *order = text_of(s, MACHINE, "cuda_order"), *chosen = getenv("CUDA_VISIBLE_DEVICES");
    int all[MAX_GPUS], wanted[MAX_GPUS];
    if (flags) return CUDA_INVALID_VALUE;
    if (!order) return CUDA_UNKNOWN;
    int there = listed(order, all), asked = chosen ? listed(chosen, wanted) : there;
    for (count = 0; count < asked; count++) {
        int number = chosen ? wanted[count] : count;
        if (number >= there) break;
        visible[count] = all[number];
    }
    return count ? SUCCESS : CUDA_NO_DEVICE;
}

int cuDeviceGetCount(int *out) {
    if (count < 0) return CUDA_NOT_INITIALIZED;
    *out = count;
    return SUCCESS;
}

int cuDeviceGet(int *out, int ordinal) {
    if (ordinal < 0 || ordinal >= count) return CUDA_INVALID_VALUE;
    *out = ordinal;
    return SUCCESS;
}

int cuDeviceGetUuid_v2(unsigned char *out, int device) {
    if (device < 0 || device >= count) return CUDA_INVALID_VALUE;
    const char *text = text_of(state(), visible[device], "uuid");
    int digits = 0;
    memset(out, 0, 16);
    for (text += strlen("GPU-"); *text && digits < 32; text++) {
        const char *hexadecimal = "0123456789abcdef", *at = strchr(hexadecimal, *text);
        if (at) out[digits / 2] |= (unsigned char)((at - hexadecimal) << (digits % 2 ? 0 : 4)), digits++;
    }
    return SUCCESS;
}
