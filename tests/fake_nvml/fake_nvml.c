/* A stand-in for libnvidia-ml.so.1 that answers from a small text file, re-read whenever it changes.
 *
 * The file named by FAKE_NVML_STATE holds one statement a line; a later one wins over an earlier one:
 *
 *   driver 575.57.08                              value of the whole machine
 *   gpu 0 utilization 73                          value of one GPU (text to the end of the line)
 *   gpu 0 utilization ~55 99                      another number between these each second, all of a GPU alike
 *   process 0 compute 4711 1048576                a process on GPU 0 (bytes, or - for not available)
 *   return nvmlDeviceGetPowerUsage 3 *            return code, for one GPU's number or * for all
 *   delay nvmlDeviceGetPowerUsage 20000 0         microseconds that a call takes
 *   lost 0                                        the GPU has fallen off the bus
 *
 * Absurd answers: gpus_told, and of a GPU mig_told, listed_told (processes) and field_type (an nvmlValueType_t; the
 * value is a double's text where it is 0) stand for what is true.
 *
 * A function named without its version suffix means all its versions, with it that one; one field of
 * nvmlDeviceGetFieldValues is nvmlDeviceGetFieldValues:186.
 *
 * Two more variables are read once, when the library is loaded: FAKE_NVML_LATENCY_US is how long every call sleeps that
 * asks a device, beside what the file says, or "card": calls take what an H200's took; FAKE_NVML_CALLS names a file of
 * eight bytes in which such calls are counted.
 */
#include "fake_nvml.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

Device gpu_handles[MAX_GPUS];
static Device mig_handles[MAX_GPUS][MAX_MIG];
static State *current;
static struct stat seen;
static long long next_look;
static int references;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

long long now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static long latency_us;
static int as_card;
static unsigned long long *calls;

__attribute__((constructor)) static void read_environment(void) {
    const char *latency = getenv("FAKE_NVML_LATENCY_US"), *path = getenv("FAKE_NVML_CALLS");
    latency_us = latency ? atol(latency) : 0;
    as_card = latency && !strcmp(latency, "card");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) calls = mapped;
    close(file);
}

/* What every call that asks a device costs. */
static void ask(void) {
    if (calls) __sync_fetch_and_add(calls, 1);
    if (latency_us > 0) nanosleep(&(struct timespec){latency_us / 1000000, latency_us % 1000000 * 1000}, NULL);
}

void card_takes(long us) {
    struct timespec t = {0, 0};
    for (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); as_card && us > 0;) {
        struct timespec now;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        if ((now.tv_sec - t.tv_sec) * 1000000 + (now.tv_nsec - t.tv_nsec) / 1000 >= us) return;
    }
}

void card_waits(long us) {
    if (as_card) nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

static int gpu_number(const char *text) { return *text == '*' ? ALL : atoi(text); }

static unsigned tag_of(int gpu, const char *key) {
    unsigned tag = 2166136261u ^ (unsigned)gpu;
    while (*key) tag = (tag ^ (unsigned char)*key++) * 16777619u;
    return tag;
}

static void add_value(State *s, int gpu, const char *key, int length, const char *text) {
    if (s->values == MAX_VALUES) return;
    Value *v = &s->value[s->values];
    v->gpu = gpu;
    snprintf(v->key, sizeof v->key, "%.*s", length, key);
    snprintf(v->text, sizeof v->text, "%s", text);
    s->tag[s->values++] = tag_of(gpu, v->key);
}

static void parse_line(State *s, char *line) {
    char word[64], function[64], who[16], kind[16], size[32];
    int gpu;
    long number;
    unsigned pid;
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "gpu ", 4)) { /* most lines by far: without sscanf */
        char *key = line + 4;
        gpu = (int)strtol(key, &key, 10);
        key += strspn(key, " ");
        size_t length = strcspn(key, " ");
        if (length) add_value(s, gpu, key, (int)length, key + length + strspn(key + length, " "));
        return;
    }
    if (sscanf(line, "%63s", word) != 1 || gpm_line(s, line)) return;
    if (!strcmp(word, "process") && s->processes < MAX_PROCESSES) {
        if (sscanf(line, "process %d %15s %u %31s", &gpu, kind, &pid, size) != 4) return;
        unsigned long long bytes = *size == '-' ? ~0ULL : strtoull(size, 0, 10);
        s->process[s->processes++] = (Process){gpu, !strcmp(kind, "graphics"), pid, bytes};
    } else if (!strcmp(word, "return") && s->returns < MAX_RULES) {
        if (sscanf(line, "return %63s %ld %15s", function, &number, who) != 3) return;
        Rule *r = &s->ret[s->returns++];
        r->gpu = gpu_number(who), r->number = number;
        strcpy(r->function, function);
    } else if (!strcmp(word, "delay") && s->delays < MAX_RULES) {
        if (sscanf(line, "delay %63s %ld %15s", function, &number, who) != 3) return;
        Rule *r = &s->delay[s->delays++];
        r->gpu = gpu_number(who), r->number = number;
        strcpy(r->function, function);
    } else if (!strcmp(word, "lost")) {
        if (sscanf(line, "lost %d", &gpu) == 1 && gpu >= 0 && gpu < MAX_GPUS) s->lost[gpu] = 1;
    } else {
        char *rest = line + strlen(word);
        add_value(s, MACHINE, word, (int)strlen(word), rest + strspn(rest, " "));
    }
}

State *state(void) {
    static State empty;
    pthread_mutex_lock(&lock);
    long long now = now_us();
    if (now >= next_look) {
        next_look = now + 2000;
        const char *path = getenv("FAKE_NVML_STATE");
        struct stat st;
        if (!path) path = "/etc/fake-nvml-state"; /* of an image with this driver in it */
        if (!stat(path, &st) &&
            (!current || st.st_ino != seen.st_ino || st.st_size != seen.st_size ||
             st.st_mtim.tv_sec != seen.st_mtim.tv_sec || st.st_mtim.tv_nsec != seen.st_mtim.tv_nsec)) {
            FILE *f = fopen(path, "r");
            State *s = f ? calloc(1, sizeof *s) : NULL;
            if (s) {
                char line[256];
                while (fgets(line, sizeof line, f)) parse_line(s, line);
                s->since = now, s->before = current;
                gpm_continue(s);
                current = s, seen = st;
            }
            if (f) fclose(f);
        }
    }
    State *s = current ? current : &empty;
    pthread_mutex_unlock(&lock);
    return s;
}

const char *text_of(const State *s, int gpu, const char *key) {
    unsigned tag = tag_of(gpu, key);
    for (int i = s->values - 1; i >= 0; i--)
        if (s->tag[i] == tag && s->value[i].gpu == gpu && !strcmp(s->value[i].key, key)) return s->value[i].text;
    return NULL;
}

static unsigned long long wandering(int gpu, const char *range) {
    char *rest;
    long long low = strtoll(range, &rest, 10), high = strtoll(rest, NULL, 10);
    unsigned mixed = (unsigned)(now_us() / 1000000) * 2654435761u ^ (unsigned)gpu * 2246822519u;
    mixed = (mixed ^ mixed >> 15) * 2246822519u;
    return low + (high - low) * (long long)((mixed ^ mixed >> 13) % 1001) / 1000;
}

unsigned long long number_of(const State *s, int gpu, const char *key) {
    const char *text = text_of(s, gpu, key);
    if (text && *text == '~') return wandering(gpu, text + 1);
    return text ? strtoull(text, 0, 10) : 0;
}

/* Whether the symbol (perhaps with _v2, _v3) is the function that a rule names. */
static int names(const char *rule, const char *symbol) {
    size_t n = strlen(rule);
    return !strncmp(rule, symbol, n) && (!symbol[n] || (symbol[n] == '_' && symbol[n + 1] == 'v'));
}

long rule_for(const Rule *rules, int count, const char *symbol, int gpu, long otherwise) {
    for (int i = count - 1; i >= 0; i--)
        if ((rules[i].gpu == ALL || rules[i].gpu == gpu) && names(rules[i].function, symbol))
            return rules[i].number;
    return otherwise;
}

void take_time(const char *symbol, int gpu) {
    long long start = now_us();
    for (;;) {
        State *s = state();
        long long left = start + rule_for(s->delay, s->delays, symbol, gpu, 0) - now_us();
        if (left <= 0) return;
        if (left > 10000) left = 10000;
        nanosleep(&(struct timespec){0, left * 1000}, NULL);
    }
}

int enter_machine(const char *symbol, State **s) {
    take_time(symbol, ALL);
    *s = state();
    int code = (int)rule_for((*s)->ret, (*s)->returns, symbol, ALL, SUCCESS);
    return code ? code : references ? SUCCESS : UNINITIALIZED;
}

int enter(const char *symbol, const Device *d, State **s) {
    if (!d) return INVALID_ARGUMENT;
    ask();
    take_time(symbol, d->gpu);
    *s = state();
    if (!references) return UNINITIALIZED;
    if ((*s)->lost[d->gpu]) return GPU_IS_LOST;
    return (int)rule_for((*s)->ret, (*s)->returns, symbol, d->gpu, SUCCESS);
}

int give(char *out, unsigned size, const char *text) {
    if (!text) return NOT_SUPPORTED;
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return SUCCESS;
}

int gpu_count(const State *s) {
    int n = (int)number_of(s, MACHINE, "gpus");
    return n > MAX_GPUS ? MAX_GPUS : n;
}

/* The nth MIG device's UUID of the comma-separated value "mig". */
static int mig_uuid(const State *s, int gpu, int n, char *out, size_t size) {
    const char *list = text_of(s, gpu, "mig");
    while (list && *list) {
        size_t length = strcspn(list, ",");
        if (n-- == 0) {
            snprintf(out, size, "%.*s", (int)length, list);
            return 1;
        }
        list += length + (list[length] == ',');
    }
    return 0;
}

/* ---- the machine ------------------------------------------------------------------------- */

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    take_time("nvmlInit", ALL);
    State *s = state();
    int code = (int)rule_for(s->ret, s->returns, "nvmlInit", ALL, SUCCESS);
    if (code) return code;
    for (int g = 0; g < MAX_GPUS; g++) {
        gpu_handles[g] = (Device){g, -1};
        for (int m = 0; m < MAX_MIG; m++) mig_handles[g][m] = (Device){g, m};
    }
    __sync_fetch_and_add(&references, 1);
    return SUCCESS;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) {
    take_time(__func__, ALL);
    if (references <= 0) return UNINITIALIZED;
    __sync_fetch_and_sub(&references, 1);
    return SUCCESS;
}

const char *nvmlErrorString(int code) {
    switch (code) {
    case 0: return "Success";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    State *s;
    int code = enter_machine(__func__, &s);
    return code ? code : give(out, size, text_of(s, MACHINE, "driver"));
}

int nvmlSystemGetNVMLVersion(char *out, unsigned size) {
    State *s;
    int code = enter_machine(__func__, &s);
    return code ? code : give(out, size, text_of(s, MACHINE, "nvml"));
}

int nvmlSystemGetCudaDriverVersion_v2(int *out) {
    State *s;
    int code = enter_machine(__func__, &s);
    if (!code) *out = (int)number_of(s, MACHINE, "cuda");
    return code;
}
int nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }

int nvmlDeviceGetCount_v2(unsigned *out) {
    State *s;
    int code = enter_machine(__func__, &s);
    const char *told = text_of(s, MACHINE, "gpus_told");
    if (!code) *out = told ? (unsigned)number_of(s, MACHINE, "gpus_told") : (unsigned)gpu_count(s);
    return code;
}

/* ---- handles ----------------------------------------------------------------------------- */

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out) {
    State *now = state();
    if (references && index >= (unsigned)gpu_count(now)) return INVALID_ARGUMENT;
    ENTER(&gpu_handles[index]);
    *out = &gpu_handles[index];
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device **out) {
    State *now = state();
    char mig[120];
    for (int g = 0; g < gpu_count(now); g++) {
        const char *own = text_of(now, g, "uuid");
        if (own && !strcmp(own, uuid)) {
            ENTER(&gpu_handles[g]);
            *out = &gpu_handles[g];
            return SUCCESS;
        }
        for (int m = 0; m < MAX_MIG && mig_uuid(now, g, m, mig, sizeof mig); m++)
            if (!strcmp(mig, uuid)) {
                ENTER(&mig_handles[g][m]);
                *out = &mig_handles[g][m];
                return SUCCESS;
            }
    }
    return references ? NOT_FOUND : UNINITIALIZED;
}

int nvmlDeviceGetMaxMigDeviceCount(Device *d, unsigned *out) {
    ENTER(d);
    *out = d->mig < 0 && text_of(s, d->gpu, "mig") ? MAX_MIG : 0;
    if (text_of(s, d->gpu, "mig_told")) *out = (unsigned)NUMBER("mig_told");
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device *d, unsigned index, Device **out) {
    char mig[120];
    ENTER(d);
    if (d->mig >= 0 || index >= MAX_MIG) return INVALID_ARGUMENT;
    if (!mig_uuid(s, d->gpu, (int)index, mig, sizeof mig)) return NOT_FOUND;
    *out = &mig_handles[d->gpu][index];
    return SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device *d, Device **out) {
    ENTER(d);
    if (d->mig < 0) return INVALID_ARGUMENT;
    *out = &gpu_handles[d->gpu];
    return SUCCESS;
}

int nvmlDeviceIsMigDeviceHandle(Device *d, unsigned *out) {
    ENTER(d);
    *out = d->mig >= 0;
    return SUCCESS;
}

int nvmlDeviceGetIndex(Device *d, unsigned *out) {
    ENTER(d);
    *out = (unsigned)(d->mig >= 0 ? d->mig : d->gpu);
    return SUCCESS;
}

/* ---- facts ------------------------------------------------------------------------------- */

int nvmlDeviceGetName(Device *d, char *out, unsigned size) {
    ENTER(d);
    return give(out, size, text_of(s, d->gpu, "name"));
}

int nvmlDeviceGetUUID(Device *d, char *out, unsigned size) {
    char mig[120];
    ENTER(d);
    if (d->mig >= 0) return give(out, size, mig_uuid(s, d->gpu, d->mig, mig, sizeof mig) ? mig : NULL);
    return give(out, size, text_of(s, d->gpu, "uuid"));
}

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} PciInfo;

int nvmlDeviceGetPciInfo_v3(Device *d, PciInfo *out) {
    ENTER_GPU(d);
    memset(out, 0, sizeof *out);
    const char *bus = text_of(s, d->gpu, "pci_bus_id");
    return give(out->busId, sizeof out->busId, bus);
}

#define ONE_NUMBER(function, type, key)                      \
    int function(Device *d, type *out) {                     \
        ENTER_GPU(d);                                        \
        *out = (type)NUMBER(key);                            \
        return SUCCESS;                                      \
    }
ONE_NUMBER(nvmlDeviceGetNumGpuCores, unsigned, "cores")
ONE_NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned, "bus_width")
ONE_NUMBER(nvmlDeviceGetPersistenceMode, unsigned, "persistence")
ONE_NUMBER(nvmlDeviceGetComputeMode, unsigned, "compute_mode")
ONE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, "power_limit")
ONE_NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, "power_limit")
ONE_NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, "power_limit")
ONE_NUMBER(nvmlDeviceGetArchitecture, unsigned, "architecture")
ONE_NUMBER(nvmlDeviceGetPerformanceState, unsigned, "performance")
ONE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "pcie_generation")
ONE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "pcie_width")

int nvmlDeviceGetTemperatureThreshold(Device *d, int which, unsigned *out) {
    ENTER_GPU(d);
    if (which != 1 && which != 3) return NOT_SUPPORTED;
    *out = (unsigned)NUMBER(which == 1 ? "temperature_slowdown" : "temperature_max");
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(Device *d, unsigned *out) {
    ENTER_GPU(d);
    *out = (unsigned)loaded(s, d->gpu, "power", "power_idle", SECOND_US);
    return SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(Device *d, unsigned long long *out) {
    ENTER_GPU(d);
    card_takes(ENERGY_TAKES_US);
    *out = energy_of(s, d->gpu);
    return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(Device *d, int *major, int *minor) {
    ENTER(d);
    const char *text = text_of(s, d->gpu, "compute_capability");
    return text && sscanf(text, "%d.%d", major, minor) == 2 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetMigMode(Device *d, unsigned *now, unsigned *pending) {
    ENTER_GPU(d);
    *now = *pending = text_of(s, d->gpu, "mig") != NULL;
    return SUCCESS;
}

int nvmlDeviceGetEccMode(Device *d, unsigned *now, unsigned *pending) {
    ENTER_GPU(d);
    *now = *pending = (unsigned)NUMBER("ecc");
    return SUCCESS;
}

/* ---- readings ---------------------------------------------------------------------------- */

int nvmlDeviceGetUtilizationRates(Device *d, unsigned *out) {
    ENTER_GPU(d);
    out[0] = (unsigned)loaded(s, d->gpu, "utilization", NULL, UTILIZATION_US);
    out[1] = (unsigned)loaded(s, d->gpu, "memory_busy", NULL, UTILIZATION_US);
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(Device *d, unsigned long long *out) {
    ENTER(d);
    unsigned long long used = NUMBER("memory_used") + NUMBER("memory_reserved");
    out[0] = NUMBER("memory_total"), out[1] = out[0] - used, out[2] = used;
    return SUCCESS;
}

typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;

int nvmlDeviceGetMemoryInfo_v2(Device *d, Memory2 *out) {
    ENTER(d);
    if (out->version != (sizeof *out | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
    out->total = NUMBER("memory_total"), out->reserved = NUMBER("memory_reserved");
    out->used = NUMBER("memory_used"), out->free = out->total - out->reserved - out->used;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(Device *d, unsigned sensor, unsigned *out) {
    ENTER_GPU(d);
    if (sensor) return INVALID_ARGUMENT;
    *out = (unsigned)NUMBER("temperature");
    return SUCCESS;
}

/* A card without a value has no fan of its own. */
int nvmlDeviceGetFanSpeed(Device *d, unsigned *out) {
    ENTER_GPU(d);
    if (!text_of(s, d->gpu, "fan")) return NOT_SUPPORTED;
    *out = (unsigned)NUMBER("fan");
    return SUCCESS;
}

#define VIDEO(function, key)                                      \
    int function(Device *d, unsigned *out, unsigned *period_us) { \
        ENTER_GPU(d);                                             \
        *out = (unsigned)NUMBER(key);                             \
        *period_us = 100000;                                      \
        return SUCCESS;                                           \
    }
VIDEO(nvmlDeviceGetEncoderUtilization, "encoder")
VIDEO(nvmlDeviceGetDecoderUtilization, "decoder")

typedef struct { unsigned version, sensor; int temperature; } Temperature1;

int nvmlDeviceGetTemperatureV(Device *d, Temperature1 *out) {
    ENTER_GPU(d);
    if (out->version != (sizeof *out | 1u << 24)) return ARGUMENT_VERSION_MISMATCH;
    out->temperature = (int)NUMBER("temperature");
    return SUCCESS;
}

static int clock_of(const State *s, const Device *d, unsigned type, const char *prefix, unsigned *out) {
    char key[40];
    if (type > 3) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "%s%s", prefix, type == 2 ? "memory" : "sm");
    *out = (unsigned)NUMBER(key);
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(Device *d, unsigned type, unsigned *out) {
    ENTER_GPU(d);
    return clock_of(s, d, type, "clock_", out);
}

int nvmlDeviceGetMaxClockInfo(Device *d, unsigned type, unsigned *out) {
    ENTER_GPU(d);
    return clock_of(s, d, type, "max_clock_", out);
}

int nvmlDeviceGetPcieThroughput(Device *d, unsigned counter, unsigned *out) {
    ENTER_GPU(d);
    if (counter > 1) return INVALID_ARGUMENT;
    card_waits(21000); /* the window in which it counts */
    *out = (unsigned)NUMBER(counter ? "pcie_receive" : "pcie_transmit");
    return SUCCESS;
}

typedef struct {
    unsigned fieldId, scopeId;
    int64_t timestamp, latencyUsec;
    unsigned valueType, nvmlReturn;
    union { double d; unsigned ui; unsigned long long ull; } value;
} FieldValue;

int nvmlDeviceGetFieldValues(Device *d, int count, FieldValue *out) {
    ENTER(d);
    for (int i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "nvmlDeviceGetFieldValues:%u", out[i].fieldId);
        int is_energy = out[i].fieldId == 83 || out[i].fieldId == 191, no_such = out[i].fieldId == 274 || out[i].fieldId == 289;
        const char *key = out[i].fieldId == 186   ? "power_instant"
                          : out[i].fieldId == 185 ? "power_average"
                          : is_energy             ? "energy"
                                                  : NULL;
        long code = rule_for(s->ret, s->returns, name, d->gpu, SUCCESS);
        out[i].nvmlReturn = (unsigned)(code ? code : key ? SUCCESS : no_such ? INVALID_ARGUMENT : NOT_SUPPORTED);
        out[i].valueType = is_energy ? 3 : 1; /* unsigned long long, unsigned int */
        out[i].value.ull = 0;
        if (out[i].nvmlReturn) continue;
        if (is_energy) {
            card_takes(ENERGY_TAKES_US);
            out[i].value.ull = energy_of(s, d->gpu);
        } else {
            out[i].value.ui = (unsigned)loaded(s, d->gpu, key, "power_idle", out[i].fieldId == 186 ? POWER_US : SECOND_US);
        }
        if (!text_of(s, d->gpu, "field_type")) continue;
        out[i].valueType = (unsigned)NUMBER("field_type");
        if (out[i].valueType == 0) out[i].value.d = atof(text_of(s, d->gpu, key));
    }
    return SUCCESS;
}

typedef struct { unsigned pid; unsigned long long bytes; unsigned gpu_instance, compute_instance; } ProcessInfo;

static int list_processes(const State *s, const Device *d, int graphics, unsigned *count, ProcessInfo *out) {
    unsigned room = out ? *count : 0, found = 0;
    for (int i = 0; i < s->processes; i++) {
        const Process *p = &s->process[i];
        if (p->gpu != d->gpu || p->graphics != graphics) continue;
        if (found < room) out[found] = (ProcessInfo){p->pid, p->bytes, ~0u, ~0u};
        found++;
    }
    *count = found;
    if (text_of(s, d->gpu, "listed_told")) *count = (unsigned)number_of(s, d->gpu, "listed_told");
    return *count > room ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device *d, unsigned *count, ProcessInfo *out) {
    ENTER(d);
    return list_processes(s, d, 0, count, out);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(Device *d, unsigned *count, ProcessInfo *out) {
    ENTER(d);
    return list_processes(s, d, 1, count, out);
}
