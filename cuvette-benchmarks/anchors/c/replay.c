/* Replays traces through cuMemAllocFromPoolAsync. The arguments are files that python/traces.py made of the CSV logs. */
#include "anchor.h"
#include <string.h>

struct header {
  int64_t operations, slots, streams, peak_live;
};

struct operation {
  int64_t bytes; /* negative: free */
  int32_t slot, stream;
};

static const char* stem(const char* path) {
  static char name[256];
  const char* slash = strrchr(path, '/');
  snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
  char* dot = strchr(name, '.');
  if (dot) *dot = 0;
  return name;
}

static double replay_once(const struct header* h, const struct operation* ops, CUdeviceptr* live, CUmemoryPool pool,
                          CUstream* streams) {
  __typeof__(&cuMemAllocFromPoolAsync) alloc_async = CU(cuMemAllocFromPoolAsync);
  __typeof__(&cuMemFreeAsync) free_async = CU(cuMemFreeAsync);
  double start = anchor_nanos();
  for (int64_t i = 0; i < h->operations; i++) {
    const struct operation* o = &ops[i];
    if (o->bytes >= 0) {
      CHECK(alloc_async(&live[o->slot], (size_t)o->bytes, pool, streams[o->stream]));
    } else {
      free_async(live[o->slot], streams[o->stream]);
      live[o->slot] = 0;
    }
  }
  double each = (anchor_nanos() - start) / (double)h->operations;
  for (int64_t k = 0; k < h->slots; k++) {
    if (live[k]) CHECK(free_async(live[k], streams[0]));
    live[k] = 0;
  }
  CHECK(CU(cuCtxSynchronize)());
  return each;
}

/* Live and held memory at some points of one pass through a new pool, as `cuvette replay --timeline` prints them. */
static void timeline(const struct header* h, const struct operation* ops, CUdeviceptr* live, int64_t* sizes,
                     CUstream* streams, const char* name) {
  CUmemoryPool pool = anchor_pool();
  int64_t points = h->operations < 300 ? h->operations : 300, printed = 0, now = 0, peak = 0;
  printf("{\"anchor\":\"cudaMallocAsync\",\"work\":\"replay-%s\",\"timeline\":[", name);
  for (int64_t i = 0; i < h->operations; i++) {
    const struct operation* o = &ops[i];
    if (o->bytes >= 0) {
      CHECK(CU(cuMemAllocFromPoolAsync)(&live[o->slot], (size_t)o->bytes, pool, streams[o->stream]));
      sizes[o->slot] = o->bytes;
      now += o->bytes;
    } else {
      CHECK(CU(cuMemFreeAsync)(live[o->slot], streams[o->stream]));
      live[o->slot] = 0;
      now -= sizes[o->slot];
    }
    if (now > peak) peak = now;
    if (i + 1 >= h->operations * (printed + 1) / points) {
      cuuint64_t held = 0;
      CHECK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &held));
      printf("%s[%lld,%lld,%llu]", printed ? "," : "", (long long)(i + 1), (long long)peak,
             (unsigned long long)held);
      printed++;
      peak = now;
    }
  }
  printf("]}\n");
  fflush(stdout);
  for (int64_t k = 0; k < h->slots; k++) {
    if (live[k]) CHECK(CU(cuMemFreeAsync)(live[k], streams[0]));
    live[k] = 0;
  }
  CHECK(CU(cuCtxSynchronize)());
  CHECK(CU(cuMemPoolDestroy)(pool));
}

static void replay(const char* path) {
  FILE* file = fopen(path, "rb");
  struct header h;
  if (!file || fread(&h, sizeof h, 1, file) != 1) anchor_missing("a trace cannot be read");
  struct operation* ops = malloc((size_t)h.operations * sizeof *ops);
  CUdeviceptr* live = calloc((size_t)h.slots, sizeof *live);
  CUstream* streams = malloc((size_t)h.streams * sizeof *streams);
  if (fread(ops, sizeof *ops, (size_t)h.operations, file) != (size_t)h.operations) anchor_missing("a trace is cut off");
  fclose(file);
  for (int64_t s = 0; s < h.streams; s++) CHECK(CU(cuStreamCreate)(&streams[s], CU_STREAM_NON_BLOCKING));
  CUmemoryPool pool = anchor_pool();
  cuuint64_t held = 0;
  double best = 1e18;
  for (int r = 0; r < 4; r++) {
    double each = replay_once(&h, ops, live, pool, streams);
    if (r == 0) CHECK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &held));
    if (r > 0 && each < best) best = each;
  }
  printf("{\"anchor\":\"cudaMallocAsync\",\"work\":\"replay-%s\",\"nsPerOperation\":%.1f,\"ratio\":%.4f,\"threads\":1}\n",
         stem(path), best, (double)held / (double)h.peak_live);
  fflush(stdout);
  CHECK(CU(cuMemPoolDestroy)(pool));
  int64_t* sizes = calloc((size_t)h.slots, sizeof *sizes);
  timeline(&h, ops, live, sizes, streams, stem(path));
  free(sizes);
  for (int64_t s = 0; s < h.streams; s++) CHECK(CU(cuStreamDestroy)(streams[s]));
  free(ops);
  free(live);
  free(streams);
}

int main(int count, char** paths) {
  anchor_name = "cudaMallocAsync";
  anchor_open();
  for (int i = 1; i < count; i++) replay(paths[i]);
  return 0;
}
