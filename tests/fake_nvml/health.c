/* Clock event reasons, memory errors, Xid events and the utilization of processes.
 *
 *   gpu 0 clocks_event_reasons 4         bits of nvmlClocksEventReason*
 *   gpu 0 xids 13,79                     Xid errors so far: those that come after a registration are told
 *   gpu 0 process_utilization 4711:35/20,4712:5   the samples since the last, every 0.2 s, separated by commas: pid, per cent of the time with
 *                                        kernels, and with accesses to device memory (0 where it is not said)
 */
#include "fake_nvml.h"

int nvmlDeviceGetCurrentClocksEventReasons(Device *d, unsigned long long *out) {
    ENTER_GPU(d);
    *out = NUMBER("clocks_event_reasons");
    return SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(Device *d, unsigned long long *out) {
    ENTER_GPU(d);
    *out = NUMBER("clocks_event_reasons");
    return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(Device *d, unsigned type, unsigned counter, unsigned long long *out) {
    ENTER_GPU(d);
    if (type > 1 || counter > 1) return INVALID_ARGUMENT;
    if (!NUMBER("ecc")) return NOT_SUPPORTED;
    *out = NUMBER(type ? "ecc_uncorrected" : "ecc_corrected");
    return SUCCESS;
}

/* ---- events ------------------------------------------------------------------------------ */

enum { XID_CRITICAL_ERROR = 8 };

typedef struct { int registered[MAX_GPUS], told[MAX_GPUS]; } EventSet;
typedef struct {
    Device *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
} EventData;

/* The nth number of a comma-separated list, from 0 on; -1 behind its end. */
static long nth(const char *list, int n) {
    while (list && *list) {
        if (n-- == 0) return atol(list);
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return -1;
}

int nvmlDeviceGetSupportedEventTypes(Device *d, unsigned long long *out) {
    ENTER_GPU(d);
    *out = NUMBER("event_types");
    return SUCCESS;
}

int nvmlEventSetCreate(EventSet **out) {
    State *s;
    int code = enter_machine(__func__, &s);
    if (!code) *out = calloc(1, sizeof **out);
    return code;
}

int nvmlEventSetFree(EventSet *set) {
    free(set);
    return SUCCESS;
}

int nvmlDeviceRegisterEvents(Device *d, unsigned long long types, EventSet *set) {
    ENTER_GPU(d);
    if (types & ~NUMBER("event_types")) return NOT_SUPPORTED;
    set->registered[d->gpu] = 1;
    set->told[d->gpu] = 0;
    while (nth(text_of(s, d->gpu, "xids"), set->told[d->gpu]) >= 0) set->told[d->gpu]++;
    return SUCCESS;
}

/* Between two looks for an event, where the real driver wakes its waiter. */
#ifndef EVENT_LOOK_NS
#define EVENT_LOOK_NS 20000000
#endif

int nvmlEventSetWait_v2(EventSet *set, EventData *out, unsigned milliseconds) {
    long long until = now_us() + milliseconds * 1000LL;
    do {
        State *s;
        int code = enter_machine(__func__, &s);
        if (code) return code;
        for (int g = 0; g < gpu_count(s); g++) {
            long number = set->registered[g] ? nth(text_of(s, g, "xids"), set->told[g]) : -1;
            if (number < 0) continue;
            set->told[g]++;
            *out = (EventData){&gpu_handles[g], XID_CRITICAL_ERROR, (unsigned long long)number, ~0u, ~0u};
            return SUCCESS;
        }
        long long left = (until - now_us()) * 1000;
        if (left > EVENT_LOOK_NS) left = EVENT_LOOK_NS;
        if (left > 0) nanosleep(&(struct timespec){left / 1000000000, left % 1000000000}, NULL);
    } while (now_us() < until);
    return TIMEOUT;
}

/* ---- processes --------------------------------------------------------------------------- */

typedef struct {
    unsigned pid;
    unsigned long long time;
    unsigned sm, memory, encoder, decoder;
} ProcessSample;

/* Since 0 the driver gives what it has kept from long ago; later, what came after that moment. */
int nvmlDeviceGetProcessUtilization(Device *d, ProcessSample *out, unsigned *count, unsigned long long since) {
    ENTER_GPU(d);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    unsigned long long now = (t.tv_sec * 1000000ULL + t.tv_nsec / 1000) / UTILIZATION_US * UTILIZATION_US;
    const char *list = text_of(s, d->gpu, "process_utilization");
    unsigned found = 0, pid, percent, memory, room = out ? *count : 0;
    while (memory = 0, list && sscanf(list, "%u:%u/%u", &pid, &percent, &memory) >= 2) {
        if (since < now) {
            if (found < room) out[found] = (ProcessSample){pid, now, since ? percent : 99, since ? memory : 99, 0, 0};
            found++;
        }
        list = strchr(list, ',');
        if (list) list++;
    }
    *count = found;
    if (!found) return NOT_FOUND;
    if (out) card_takes(PROCESSES_TAKE_US);
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
