/* A load that comes and goes, and the samples of it that the driver takes by itself.
 *
 *   gpu 0 load 200000 100000     busy in the first 100 ms of every 200 ms of the monotonic clock: utilization,
 *                                memory_busy, power and power_instant are those of busy time, and power_idle of the rest
 *   gpu 0 sample_us 20000        how often the driver takes a sample of any kind; what is read directly is the latest one
 *   gpu 0 samples 120            how many it keeps for nvmlDeviceGetSamples, of each kind; 0: not supported
 *   gpu 0 samples_told 9         how many it tells of, and gpu 0 sample_type 3: their nvmlValueType_t, whatever is true
 *   return nvmlDeviceGetSamples:1 3 *    the return code of one kind (0 power, 1 utilization, 2 memory, 3 encoder, 4 decoder)
 *
 * Periods and numbers are else those of an H200. Without a load the GPU is busy all the time. Time stamps are microseconds of a clock that is neither that of the day nor
 * the monotonic one, as nvml.h does not say which it is.
 */
#include "fake_nvml.h"

enum { CLOCK = 77000000, UNSIGNED_INT = 1, POWER_SAMPLES = 119, UTILIZATION_SAMPLES = 71, CLOCKS = 5, MODULE_POWER = 7 };

typedef struct { unsigned long long time_us; union { double d; unsigned ui; unsigned long long ull; } value; } Sample;

/* Busy microseconds up to a moment. */
static double busy_until(const State *s, int gpu, long long t) {
    const char *text = text_of(s, gpu, "load");
    if (!text) return (double)t;
    char *rest;
    long long period = strtoll(text, &rest, 10), busy = strtoll(rest, NULL, 10), into = t % period;
    return (double)(t / period) * busy + (into < busy ? into : busy);
}

static long long sample_us(const State *s, int gpu, long long otherwise) {
    unsigned long long us = number_of(s, gpu, "sample_us");
    return us ? (long long)us : otherwise;
}

/* The mean over the microseconds before t, with these values of busy and of idle time. */
static double mean(const State *s, int gpu, long long t, long long us, double busy, double idle) {
    double share = (busy_until(s, gpu, t) - busy_until(s, gpu, t - us)) / us;
    return idle + (busy - idle) * share;
}

unsigned long long loaded(const State *s, int gpu, const char *key, const char *idle_key, long long us) {
    double busy = number_of(s, gpu, key), idle = idle_key ? number_of(s, gpu, idle_key) : 0;
    if (!text_of(s, gpu, "load")) return busy;
    us = sample_us(s, gpu, us);
    return mean(s, gpu, now_us() / us * us, us, busy, idle) + 0.5;
}

unsigned long long energy_of(const State *s, int gpu) {
    if (!text_of(s, gpu, "load")) return number_of(s, gpu, "energy");
    double busy = number_of(s, gpu, "power_instant"), idle = number_of(s, gpu, "power_idle");
    long long now = now_us() / ENERGY_US * ENERGY_US;
    return (idle * now + (busy - idle) * busy_until(s, gpu, now)) / 1e6;
}

int nvmlDeviceGetSamples(Device *d, unsigned kind, unsigned long long since, unsigned *type, unsigned *count, Sample *out) {
    static const char *const keys[] = {"power_instant", "utilization", "memory_busy", "encoder", "decoder"};
    char name[40];
    ENTER_GPU(d);
    if (kind >= MODULE_POWER || !count || (out && !*count)) return INVALID_ARGUMENT;
    snprintf(name, sizeof name, "nvmlDeviceGetSamples:%u", kind);
    int code = (int)rule_for(s->ret, s->returns, name, d->gpu, SUCCESS);
    if (code) return code;
    if (kind >= CLOCKS) return NOT_FOUND;
    if (out) card_takes(kind ? UTILIZATION_SAMPLES_TAKE_US : POWER_SAMPLES_TAKE_US);
    long long us = sample_us(s, d->gpu, kind ? UTILIZATION_US : POWER_US), last = now_us() / us;
    long long kept = text_of(s, d->gpu, "samples") ? (long long)NUMBER("samples") : kind ? UTILIZATION_SAMPLES : POWER_SAMPLES;
    if (!kept) return NOT_SUPPORTED;
    long long first = last - kept + 1;
    while (first <= last && (unsigned long long)(first * us + CLOCK) <= since) first++;
    if (first > last) return NOT_FOUND;
    unsigned found = 0, room = out ? *count : 0;
    double busy = NUMBER(keys[kind]), idle = kind ? 0 : NUMBER("power_idle");
    for (long long i = first; i <= last && found < room; i++)
        out[found++] = (Sample){i * us + CLOCK, {.ui = (unsigned)(mean(s, d->gpu, i * us, us, busy, idle) + 0.5)}};
    *type = text_of(s, d->gpu, "sample_type") ? (unsigned)NUMBER("sample_type") : UNSIGNED_INT;
    *count = out ? found : (unsigned)(last - first + 1);
    if (text_of(s, d->gpu, "samples_told")) *count = (unsigned)NUMBER("samples_told");
    return SUCCESS;
}
