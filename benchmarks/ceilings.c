/* What a CPU reaches by STREAM's copy and by a call of a BLAS library, timed without Python.

   ceilings copy BYTES            two arrays of that size, bytes read plus written a second
   ceilings sgemm N LIBRARY       n x n matrices by the library's own sgemm_, 2 n^3 FLOP a second

   Prints the rate by the best median of five repetitions. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SETS = 8, REPETITIONS = 5, OFFSET = 512 }; /* bytes between the arrays: STREAM's OFFSET */

typedef void sgemm(const char *, const char *, const int *, const int *, const int *,
                   const float *, const float *, const int *, const float *, const int *,
                   const float *, float *, const int *);

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static float *array(size_t count) {
    float *made = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
    if (made == NULL) exit(1);
#pragma omp parallel for
    for (size_t i = 0; i < count; i++) made[i] = (float)(i % 1000) * 1e-3f;
    return made;
}

static sgemm *product;
static float *a, *b, *c;
static size_t count;
static int n;

static void once(void) {
    if (product != NULL) {
        const float one = 1, zero = 0;
        product("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
        return;
    }
#pragma omp parallel for
    for (size_t i = 0; i < count; i++) c[i] = a[i];
}

int main(int argc, char **argv) {
    double best = 1e30, work;
    if (argc == 4 && strcmp(argv[1], "sgemm") == 0) {
        void *library = dlopen(argv[3], RTLD_NOW);
        product = library == NULL ? NULL : (sgemm *)dlsym(library, "sgemm_");
        if (product == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 3;
        }
        n = atoi(argv[2]);
        count = (size_t)n * (size_t)n;
        b = array(count);
        work = 2.0 * n * n * n;
    } else if (argc == 3 && strcmp(argv[1], "copy") == 0) {
        count = strtoull(argv[2], NULL, 10) / sizeof(float);
        work = 2.0 * (double)count * sizeof(float);
    } else {
        return 2;
    }
    a = array(2 * count + OFFSET / sizeof(float));
    c = a + count + OFFSET / sizeof(float);
    once();
    for (int set = 0; set < SETS; set++) {
        double taken[REPETITIONS];
        for (int i = 0; i < REPETITIONS; i++) {
            double begin = now();
            once();
            taken[i] = now() - begin;
        }
        qsort(taken, REPETITIONS, sizeof(double), ascending);
        if (taken[REPETITIONS / 2] < best) best = taken[REPETITIONS / 2];
    }
    printf("%.6e\n", work / best);
    fprintf(stderr, "%g\n", (double)c[count / 2]);
    return 0;
}
