/* cuMemAllocAsync from C: what the driver's own stream-ordered pool costs, and the plain pinned allocation beside it. */
#include "anchor.h"
#include <pthread.h>

enum { SLOTS = 1024, TABLE = 1 << 16 };

static __typeof__(&cuMemAllocFromPoolAsync) alloc_async;
static __typeof__(&cuMemFreeAsync) free_async;
static CUmemoryPool pool;
static CUcontext context;

static void random_live(CUstream stream) {
  static CUdeviceptr live[SLOTS];
  static size_t sizes[TABLE];
  static int slots[TABLE];
  uint64_t state = 1;
  for (int i = 0; i < TABLE; i++) sizes[i] = 1 + anchor_random(&state) % (4u << 20);
  for (int i = 0; i < TABLE; i++) slots[i] = (int)(anchor_random(&state) % SLOTS);
  MEASURE("random-live-1024-4MiB", "nsPerPair", 4, TABLE * 2, {
    int k = slots[i & (TABLE - 1)];
    if (live[k]) free_async(live[k], stream);
    CHECK(alloc_async(&live[k], sizes[i & (TABLE - 1)], pool, stream));
  });
  for (int k = 0; k < SLOTS; k++) if (live[k]) free_async(live[k], stream);
  CHECK(CU(cuStreamSynchronize)(stream));
}

/* The pool that is current for host memory, and a kept one on node 0; lines are left out where the driver has none. */
static void host_pools(CUstream stream) {
  CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};
  CUmemPoolProps on_node = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}};
  CUmemoryPool from;
  CUdeviceptr p;
  if (CU(cuMemGetMemPool)(&from, &host, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_SUCCESS) {
    MEASURE("pinned-resource-1MiB", "nsPerPair", 5, 10000, { alloc_async(&p, 1 << 20, from, stream); free_async(p, stream); });
  }
  if (CU(cuMemPoolCreate)(&from, &on_node) == CUDA_SUCCESS) {
    cuuint64_t threshold = UINT64_MAX;
    CHECK(CU(cuMemPoolSetAttribute)(from, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    MEASURE("pinned-resource-numa-1MiB", "nsPerPair", 5, 10000, { alloc_async(&p, 1 << 20, from, stream); free_async(p, stream); });
    CHECK(CU(cuMemPoolDestroy)(from));
  }
}

enum { PAIRS = 50000 };

struct worker {
  CUstream stream;
  pthread_barrier_t* barrier;
  double start, end;
};

static void* work(void* argument) {
  struct worker* w = argument;
  CUdeviceptr p;
  CHECK(CU(cuCtxSetCurrent)(context));
  CHECK(alloc_async(&p, 1 << 20, pool, w->stream));
  free_async(p, w->stream);
  pthread_barrier_wait(w->barrier);
  w->start = anchor_nanos();
  for (int i = 0; i < PAIRS; i++) {
    if (alloc_async(&p, 1 << 20, pool, w->stream)) exit(1);
    free_async(p, w->stream);
  }
  w->end = anchor_nanos();
  return NULL;
}

static double pairs_per_second(int threads, int own_stream) {
  pthread_t ids[64];
  struct worker workers[64];
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  CUstream shared;
  CHECK(CU(cuStreamCreate)(&shared, CU_STREAM_NON_BLOCKING));
  for (int t = 0; t < threads; t++) {
    workers[t] = (struct worker){shared, &barrier, 0, 0};
    if (own_stream) CHECK(CU(cuStreamCreate)(&workers[t].stream, CU_STREAM_NON_BLOCKING));
    pthread_create(&ids[t], NULL, work, &workers[t]);
  }
  double start = 1e300, end = 0; /* from the first thread's start to the last one's end */
  for (int t = 0; t < threads; t++) {
    pthread_join(ids[t], NULL);
    if (workers[t].start < start) start = workers[t].start;
    if (workers[t].end > end) end = workers[t].end;
  }
  CHECK(CU(cuCtxSynchronize)());
  for (int t = 0; t < threads && own_stream; t++) CHECK(CU(cuStreamDestroy)(workers[t].stream));
  CHECK(CU(cuStreamDestroy)(shared));
  return threads * (double)PAIRS / (end - start) * 1e9;
}

int main(void) {
  context = anchor_open();
  pool = anchor_pool();
  alloc_async = CU(cuMemAllocFromPoolAsync);
  free_async = CU(cuMemFreeAsync);
  __typeof__(&cuMemHostAlloc) host_alloc = CU(cuMemHostAlloc);
  __typeof__(&cuMemFreeHost) host_free = CU(cuMemFreeHost);
  CUstream stream;
  CUdeviceptr p;
  void* host;
  CHECK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  MEASURE("same-size-512", "nsPerPair", 5, 50000, { alloc_async(&p, 512, pool, stream); free_async(p, stream); });
  MEASURE("same-size-1MiB", "nsPerPair", 5, 50000, { alloc_async(&p, 1 << 20, pool, stream); free_async(p, stream); });
  MEASURE("async-1MiB", "nsPerPair", 5, 50000, { alloc_async(&p, 1 << 20, pool, stream); free_async(p, stream); });
  host_pools(stream);
  random_live(stream);
  const int threads[] = {1, 4, 8};
  for (int own = 1; own >= 0; own--) {
    for (int k = 0; k < 3; k++) {
      char name[64];
      double best = 0;
      for (int r = 0; r < 3; r++) {
        double rate = pairs_per_second(threads[k], own);
        if (rate > best) best = rate;
      }
      snprintf(name, sizeof name, "threads-%d-%s", threads[k], own ? "own-stream" : "same-stream");
      anchor_emit(name, "pairsPerSecond", best, threads[k]);
    }
  }
  MEASURE("pinned-1MiB", "nsPerPair", 3, 100, { host_alloc(&host, 1 << 20, 0); host_free(host); });
  return 0;
}
