/* What the parts of the stand-in for libnvidia-ml.so.1 share; fake_nvml.c says what the state file holds.
 *
 * Every .c file of this folder is compiled into the one library. Struct layouts are those of the public nvml.h.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_GPUS = 16, MAX_MIG = 8, MAX_VALUES = 1024, MAX_RULES = 256, MAX_PROCESSES = 256, ALL = -1, MACHINE = -2 };
enum { GPM_METRICS = 64 };
/* What an H200 did (driver 580): how often it samples power and utilization, renews the energy counter, and the window of
 * mean power; the processor time of its slow calls. */
enum { POWER_US = 20000, UTILIZATION_US = 200000, ENERGY_US = 100000, SECOND_US = 1000000 };
enum { ENERGY_TAKES_US = 3200, PROCESSES_TAKE_US = 2500, UTILIZATION_SAMPLES_TAKE_US = 2400, POWER_SAMPLES_TAKE_US = 340 };
enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, TIMEOUT = 10, GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25
};

typedef struct { int gpu; char key[40]; char text[120]; } Value;
typedef struct { int gpu; char function[64]; long number; } Rule;
typedef struct { int gpu; int graphics; unsigned pid; unsigned long long bytes; } Process;
/* A GPM counter: how fast it runs, and how far it was when the state began. */
typedef struct { double rate, counted; int there; } Running;
typedef struct State {
    int values, returns, delays, processes, lost[MAX_GPUS];
    unsigned tag[MAX_VALUES]; /* of a value's GPU and key: what is looked through first */
    Value value[MAX_VALUES];
    Rule ret[MAX_RULES], delay[MAX_RULES];
    Process process[MAX_PROCESSES];
    Running gpm[MAX_GPUS][MAX_MIG + 1][GPM_METRICS];
    long long since;
    int counts; /* whether there is a GPM counter */
    const struct State *before;
} State;

/* A device handle: a whole GPU, or (mig >= 0) one of its MIG devices. */
typedef struct { int gpu, mig; } Device;

#pragma GCC visibility push(hidden)
extern Device gpu_handles[MAX_GPUS];
/* Microseconds of the monotonic clock, as State.since: when that state was first seen. */
long long now_us(void);
/* The state as the file has it now; never freed, and State.before is the one that it replaced. */
State *state(void);
/* The text of a value of a GPU (or MACHINE), NULL where the file has none; as a number, else 0. */
const char *text_of(const State *s, int gpu, const char *key);
unsigned long long number_of(const State *s, int gpu, const char *key);
/* The number that the last fitting rule gives for a function (perhaps FUNCTION:DETAIL) on a GPU. */
long rule_for(const Rule *rules, int count, const char *symbol, int gpu, long otherwise);
/* Waits as long as the file says at each moment, so that a hanging call can be let go. */
void take_time(const char *symbol, int gpu);
/* The delay of a call, and its return code: of the machine; of a device, MIG devices included. */
int enter_machine(const char *symbol, State **s);
int enter(const char *symbol, const Device *d, State **s);
/* Copies a text into a caller's buffer, or gives the return code that says why it does not. */
int give(char *out, unsigned size, const char *text);
int gpu_count(const State *s);
/* With "card" as FAKE_NVML_LATENCY_US: the processor time that a call takes, the time that one sleeps; else nothing. */
void card_takes(long us);
void card_waits(long us);
/* The mean of a reading over its latest window under the load of samples.c; millijoules so far. */
unsigned long long loaded(const State *s, int gpu, const char *key, const char *idle_key, long long us);
unsigned long long energy_of(const State *s, int gpu);
/* Takes a line that is about GPM; whether it was one. Then, once for a state: counters go on from the one before. */
int gpm_line(State *s, const char *line);
void gpm_continue(State *s);
#pragma GCC visibility pop

#define ENTER(device)                                 \
    State *s;                                         \
    int entered = enter(__func__, device, &s);        \
    if (entered) return entered
#define ENTER_GPU(device)                             \
    ENTER(device);                                    \
    if ((device)->mig >= 0 && !number_of(s, (device)->gpu, "mig_answers")) return INVALID_ARGUMENT
#define NUMBER(key) number_of(s, d->gpu, key)
