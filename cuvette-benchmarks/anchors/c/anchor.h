/* What every C anchor shares: the driver loaded at run time (no libcuda.so to link with), timing, and one JSON object
 * a line on standard output. A missing driver or device is one line of JSON that says so, and exit status 3. */
#ifndef CUVETTE_ANCHOR_H
#define CUVETTE_ANCHOR_H

#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* cuda.h maps cuMemAlloc to cuMemAlloc_v2 and so on: TEXT expands that first, so the right version is loaded. */
#define CU(f) ((__typeof__(&f))anchor_symbol(TEXT(f)))
#define CHECK(call) anchor_check((call), #call)

static const char* anchor_name = "c";
static void* anchor_library;

static inline void anchor_missing(const char* why) {
  printf("{\"anchor\":\"%s\",\"missing\":\"%s\"}\n", anchor_name, why);
  exit(3);
}

static inline void* anchor_symbol(const char* name) {
  if (!anchor_library) anchor_library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!anchor_library) anchor_missing("libcuda.so.1 cannot be loaded");
  void* found = dlsym(anchor_library, name);
  if (!found) anchor_missing(name);
  return found;
}

static inline void anchor_check(CUresult status, const char* call) {
  if (status == CUDA_SUCCESS) return;
  fprintf(stderr, "status %d: %s\n", (int)status, call);
  exit(1);
}

static inline CUcontext anchor_open(void) {
  CUcontext context;
  CUresult status = CU(cuInit)(0);
  if (status == CUDA_ERROR_NO_DEVICE) anchor_missing("no CUDA device");
  anchor_check(status, "cuInit");
  CHECK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
  CHECK(CU(cuCtxSetCurrent)(context));
  return context;
}

/* A pool of the driver's that keeps everything it ever held, as a caching pool does. */
static inline CUmemoryPool anchor_pool(void) {
  CUmemPoolProps properties = {0};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool;
  CHECK(CU(cuMemPoolCreate)(&pool, &properties));
  cuuint64_t threshold = UINT64_MAX;
  CHECK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  return pool;
}

static inline double anchor_nanos(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static inline void anchor_emit(const char* work, const char* metric, double value, int threads) {
  printf("{\"anchor\":\"%s\",\"work\":\"%s\",\"%s\":%.3f,\"threads\":%d}\n", anchor_name, work, metric, value, threads);
  fflush(stdout);
}

/* The best of several repetitions, after one that warms up; in nanoseconds for each turn of the body. */
#define MEASURE(work, metric, repetitions, turns, body)                       \
  do {                                                                        \
    double best_ = 1e18;                                                      \
    for (int r_ = 0; r_ <= (repetitions); r_++) {                             \
      double start_ = anchor_nanos();                                         \
      for (int64_t i = 0; i < (turns); i++) { body; }                         \
      double each_ = (anchor_nanos() - start_) / (double)(turns);             \
      if (r_ > 0 && each_ < best_) best_ = each_;                             \
    }                                                                         \
    anchor_emit(work, metric, best_, 1);                                      \
  } while (0)

/* The random numbers of every program here, so that all do the same work: SplitMix64. */
static inline uint64_t anchor_random(uint64_t* state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

#endif
