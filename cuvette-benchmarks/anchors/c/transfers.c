/* Copies between the device and each kind of host memory, both ways, each waited for, in GB/s of 10^9 bytes: page-locked,
 * pageable (under the names of both kinds that the JVM has, heap and direct), a mapped file in the page cache, and rows that
 * lie apart, which go through one page-locked block. */
#include "anchor.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20, ROW_BYTES = 768 * 4 };

static CUdeviceptr device;
static CUstream stream;
static __typeof__(&cuMemcpyHtoDAsync) to_device;
static __typeof__(&cuMemcpyDtoHAsync) to_host;
static __typeof__(&cuStreamSynchronize) finish;

static void in(void* host, size_t bytes) {
  CHECK(to_device(device, host, bytes, stream));
  CHECK(finish(stream));
}

static void out(void* host, size_t bytes) {
  CHECK(to_host(host, device, bytes, stream));
  CHECK(finish(stream));
}

static double best(void (*copy)(void*, size_t), void* host, size_t bytes) {
  long turns = 4L * MIB / (long)bytes;
  turns = turns < 1 ? 1 : turns > 500 ? 500 : turns;
  int repetitions = bytes > 256L * MIB ? 3 : 8;
  double least = 1e18;
  for (int r = 0; r <= repetitions; r++) {
    double start = anchor_nanos();
    for (long i = 0; i < turns; i++) copy(host, bytes);
    double nanos = (anchor_nanos() - start) / (double)turns;
    if (r > 0 && nanos < least) least = nanos;
  }
  return least;
}

static void emit(const char* kind, const char* way, const char* size, double gigabytes) {
  char work[64];
  snprintf(work, sizeof work, "transfer-%s-%s-%s", kind, way, size);
  anchor_emit(work, "gigabytesPerSecond", gigabytes, 1);
}

static void measure(const char* kind, const char* other, const char* size, void* host, size_t bytes) {
  double there = (double)bytes / best(in, host, bytes);
  double back = (double)bytes / best(out, host, bytes);
  emit(kind, "h2d", size, there);
  emit(kind, "d2h", size, back);
  if (other) {
    emit(other, "h2d", size, there);
    emit(other, "d2h", size, back);
  }
}

static void of_size(const char* size, size_t bytes) {
  void* pinned;
  CHECK(CU(cuMemAlloc)(&device, bytes));
  CHECK(CU(cuMemHostAlloc)(&pinned, bytes, 0));
  memset(pinned, 1, bytes);
  measure("pinned", NULL, size, pinned, bytes);
  CHECK(CU(cuMemFreeHost)(pinned));
  char* pageable = malloc(bytes);
  if (pageable) {
    memset(pageable, 2, bytes);
    measure("heap", "direct", size, pageable, bytes);
    free(pageable);
  }
  FILE* file = tmpfile();
  if (file && ftruncate(fileno(file), (off_t)bytes) == 0) {
    char* mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (mapped != MAP_FAILED) {
      memset(mapped, 3, bytes);
      measure("mapped", NULL, size, mapped, bytes);
      munmap(mapped, bytes);
    }
  }
  if (file) fclose(file);
  CHECK(CU(cuMemFree)(device));
}

static char** rows;
static char* block;

static void gather(void* unused, size_t bytes) {
  (void)unused;
  for (size_t i = 0; i < bytes / ROW_BYTES; i++) memcpy(block + i * ROW_BYTES, rows[i], ROW_BYTES);
  in(block, bytes);
}

static void scatter(void* unused, size_t bytes) {
  (void)unused;
  out(block, bytes);
  for (size_t i = 0; i < bytes / ROW_BYTES; i++) memcpy(rows[i], block + i * ROW_BYTES, ROW_BYTES);
}

static void of_rows(size_t count) {
  size_t bytes = count * ROW_BYTES;
  char size[32];
  void* pinned;
  snprintf(size, sizeof size, "%zux768", count);
  CHECK(CU(cuMemAlloc)(&device, bytes));
  CHECK(CU(cuMemHostAlloc)(&pinned, bytes, 0));
  block = pinned;
  rows = malloc(count * sizeof *rows);
  for (size_t i = 0; i < count; i++) rows[i] = calloc(1, ROW_BYTES);
  emit("rows", "h2d", size, (double)bytes / best(gather, NULL, bytes));
  emit("rows", "d2h", size, (double)bytes / best(scatter, NULL, bytes));
  for (size_t i = 0; i < count; i++) free(rows[i]);
  free(rows);
  CHECK(CU(cuMemFreeHost)(pinned));
  CHECK(CU(cuMemFree)(device));
}

int main(void) {
  anchor_open();
  CHECK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  to_device = CU(cuMemcpyHtoDAsync);
  to_host = CU(cuMemcpyDtoHAsync);
  finish = CU(cuStreamSynchronize);
  static const struct {
    const char* name;
    size_t bytes;
  } sizes[] = {{"4KiB", 4 * KIB},      {"64KiB", 64 * KIB},    {"1MiB", MIB},
               {"16MiB", 16 * MIB},    {"64MiB", 64 * MIB},    {"256MiB", 256 * MIB},
               {"1GiB", 1024UL * MIB}, {"4GiB", 4096UL * MIB}};
  size_t available, total;
  CHECK(CU(cuMemGetInfo)(&available, &total));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    if (sizes[i].bytes <= available / 3) of_size(sizes[i].name, sizes[i].bytes);
  }
  of_rows(1000);
  of_rows(100000);
  of_rows(1000000);
  return 0;
}
