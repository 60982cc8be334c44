/* GPM of the stand-in driver: running counters that advance with time, and the means between two samples of them.
 *
 *   gpu 0 gpm 1                 nvmlGpmQueryDeviceSupport says yes for GPU 0
 *   gpm 0 10 45.5               metric 10 of GPU 0 runs at 45.5 (percent, or MiB/s) from now on
 *   gpm 0/2 10 20               the same of its GPU instance 2
 *   return nvmlGpmMetricsGet:10 3 0        the own return code of metric 10
 *   gpu 0 gpm_nan 10            metric 10 is not a number
 *   gpu 0 gpm_minimum 0         shortest time between samples in microseconds (100000); nearer ones give no number
 *   gpu 0 gpm_bits 20           counters wrap around after that many bits, and differences are not mended
 *   gpu 0 nvlink_down 1         no NVLink of GPU 0 is up
 *   gpu 0 gpm_clock -9000000    the clock of the samples was set, by that many microseconds
 *
 * A metric without a rate is not supported. The GPU instance of the nth MIG device is n + 1.
 */
#include "fake_nvml.h"

typedef struct {
    int gpu, part, taken;
    long long t;
    uint64_t counter[GPM_METRICS];
} Sample;

typedef struct { unsigned id, code; double value; const char *short_name, *long_name, *unit; } Metric;
typedef struct { unsigned version, count; Sample *first, *second; Metric metric[]; } MetricsGet;
typedef struct { unsigned version, supported; } Support;

static int live;

int gpm_line(State *s, const char *line) {
    int gpu, id, part = 0;
    double rate;
    if (sscanf(line, "gpm %d/%d %d %lf", &gpu, &part, &id, &rate) != 4 &&
        (part = 0, sscanf(line, "gpm %d %d %lf", &gpu, &id, &rate) != 3))
        return 0;
    if (gpu < 0 || gpu >= MAX_GPUS || part < 0 || part > MAX_MIG || id < 0 || id >= GPM_METRICS) return 1;
    s->gpm[gpu][part][id].rate = rate, s->gpm[gpu][part][id].there = 1;
    s->counts = 1;
    return 1;
}

static double counted(const State *s, int gpu, int part, int id, long long t) {
    const Running *r = &s->gpm[gpu][part][id];
    return r->counted + r->rate * (double)(t - s->since);
}

void gpm_continue(State *s) {
    // Without a counter its pages stay untouched: who looks at the state pays for them.
    s->counts |= s->before && s->before->counts;
    for (int g = 0; s->counts && s->before && g < MAX_GPUS; g++)
        for (int p = 0; p <= MAX_MIG; p++)
            for (int m = 0; m < GPM_METRICS; m++)
                s->gpm[g][p][m].counted = counted(s->before, g, p, m, s->since);
}

/* For tests: the samples that were allocated and not freed. */
int fakeNvmlGpmSamples(void) { return live; }

int nvmlGpmQueryDeviceSupport(Device *d, Support *out) {
    ENTER_GPU(d);
    if (out->version != 1) return ARGUMENT_VERSION_MISMATCH;
    out->supported = NUMBER("gpm") != 0;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkState(Device *d, unsigned link, unsigned *up) {
    ENTER_GPU(d);
    if (link > 17) return INVALID_ARGUMENT;
    *up = link == 0 && !NUMBER("nvlink_down"); /* the other links lead nowhere */
    return SUCCESS;
}

int nvmlGpmSampleAlloc(Sample **out) {
    State *s;
    int code = enter_machine(__func__, &s);
    if (code) return code;
    *out = calloc(1, sizeof **out);
    __sync_fetch_and_add(&live, 1);
    return SUCCESS;
}

int nvmlGpmSampleFree(Sample *sample) {
    if (!sample) return INVALID_ARGUMENT;
    free(sample);
    __sync_fetch_and_sub(&live, 1);
    return SUCCESS;
}

static int take(const State *s, const Device *d, int part, Sample *out) {
    uint64_t bits = NUMBER("gpm_bits");
    const char *set = text_of(s, d->gpu, "gpm_clock");
    long long t = now_us();
    if (!out) return INVALID_ARGUMENT;
    if (!NUMBER("gpm")) return NOT_SUPPORTED;
    *out = (Sample){.gpu = d->gpu, .part = part, .taken = 1, .t = t + (set ? atoll(set) : 0)};
    for (int m = 0; m < GPM_METRICS; m++) {
        out->counter[m] = (uint64_t)counted(s, d->gpu, part, m, t);
        if (bits) out->counter[m] &= (1ULL << bits) - 1;
    }
    return SUCCESS;
}

int nvmlGpmSampleGet(Device *d, Sample *out) {
    ENTER_GPU(d);
    return take(s, d, 0, out);
}

int nvmlGpmMigSampleGet(Device *d, unsigned instance, Sample *out) {
    ENTER_GPU(d);
    if (instance < 1 || instance > MAX_MIG) return INVALID_ARGUMENT;
    return take(s, d, (int)instance, out);
}

int nvmlDeviceGetGpuInstanceId(Device *d, unsigned *out) {
    ENTER(d);
    if (d->mig < 0) return INVALID_ARGUMENT;
    *out = (unsigned)d->mig + 1;
    return SUCCESS;
}

int nvmlDeviceGetComputeInstanceId(Device *d, unsigned *out) {
    ENTER(d);
    if (d->mig < 0) return INVALID_ARGUMENT;
    *out = 0;
    return SUCCESS;
}

int nvmlGpmMetricsGet(MetricsGet *get) {
    if (get->version != 1) return ARGUMENT_VERSION_MISMATCH;
    const Sample *a = get->first, *b = get->second;
    if (!a || !b || !a->taken || !b->taken || a->gpu != b->gpu || a->part != b->part) return INVALID_ARGUMENT;
    const Device *d = &gpu_handles[b->gpu];
    ENTER(d);
    double elapsed = (double)(b->t - a->t);
    const char *minimum = text_of(s, d->gpu, "gpm_minimum"), *nan = text_of(s, d->gpu, "gpm_nan");
    int close = elapsed >= 0 && elapsed < (minimum ? atof(minimum) : 100000);
    for (unsigned i = 0; i < get->count; i++) {
        Metric *m = &get->metric[i];
        char name[64];
        snprintf(name, sizeof name, "nvmlGpmMetricsGet:%u", m->id);
        int there = m->id < GPM_METRICS && s->gpm[b->gpu][b->part][m->id].there;
        m->code = (unsigned)rule_for(s->ret, s->returns, name, d->gpu, there ? SUCCESS : NOT_SUPPORTED);
        m->value = 0;
        if (m->code) continue;
        m->value = (double)(b->counter[m->id] - a->counter[m->id]) / elapsed;
        if (close || (nan && (unsigned)atoi(nan) == m->id)) m->value = __builtin_nan("");
    }
    return SUCCESS;
}
