/* Copies between the device and each kind of host memory, both ways, each waited for, in GB/s of 10^9 bytes: page-locked,
 * pageable (under the names of both kinds that the JVM has, heap and direct), a mapped file in the page cache, and rows that
 * lie apart, which go through one page-locked block. Then rows of 4 KiB with as much between them on the device, packed in
 * page-locked memory, and as many copies of 4 KiB in one call. */
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

enum { PITCHED_BYTES = 4 * KIB, PITCH = 2 * PITCHED_BYTES };

static CUDA_MEMCPY3D box(void* host, size_t bytes, int is_in) {
  CUdeviceptr packed = (CUdeviceptr)(uintptr_t)host;
  CUDA_MEMCPY3D copy = {0};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.WidthInBytes = PITCHED_BYTES;
  copy.srcHeight = copy.dstHeight = copy.Height = bytes / PITCHED_BYTES;
  copy.Depth = 1;
  copy.srcDevice = is_in ? packed : device;
  copy.dstDevice = is_in ? device : packed;
  copy.srcPitch = is_in ? PITCHED_BYTES : PITCH;
  copy.dstPitch = is_in ? PITCH : PITCHED_BYTES;
  return copy;
}

static void box_in(void* host, size_t bytes) {
  CUDA_MEMCPY3D copy = box(host, bytes, 1);
  CHECK(CU(cuMemcpy3DAsync)(&copy, stream));
  CHECK(finish(stream));
}

static void box_out(void* host, size_t bytes) {
  CUDA_MEMCPY3D copy = box(host, bytes, 0);
  CHECK(CU(cuMemcpy3DAsync)(&copy, stream));
  CHECK(finish(stream));
}

#if CUDA_VERSION >= 12080
static CUdeviceptr *device_parts, *host_parts;
static size_t* sizes_of_parts;
static void* batch;

static void copy_batch(CUdeviceptr* to, CUdeviceptr* from, size_t bytes) {
  CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
  size_t first = 0;
#if CUDA_VERSION >= 13000
  CHECK(((__typeof__(&cuMemcpyBatchAsync))batch)(to, from, sizes_of_parts, bytes / PITCHED_BYTES, &attributes, &first, 1,
                                                 stream));
#else
  size_t failed;
  CHECK(((__typeof__(&cuMemcpyBatchAsync))batch)(to, from, sizes_of_parts, bytes / PITCHED_BYTES, &attributes, &first, 1,
                                                 &failed, stream));
#endif
  CHECK(finish(stream));
}

static void batch_in(void* unused, size_t bytes) {
  (void)unused;
  copy_batch(device_parts, host_parts, bytes);
}

static void batch_out(void* unused, size_t bytes) {
  (void)unused;
  copy_batch(host_parts, device_parts, bytes);
}

static void of_batch(char* host, const char* size, size_t count) {
  size_t bytes = count * PITCHED_BYTES;
  batch = dlsym(anchor_library, TEXT(cuMemcpyBatchAsync));
  if (!batch) return;
  device_parts = malloc(count * sizeof *device_parts);
  host_parts = malloc(count * sizeof *host_parts);
  sizes_of_parts = malloc(count * sizeof *sizes_of_parts);
  for (size_t i = 0; i < count; i++) {
    device_parts[i] = device + i * PITCH;
    host_parts[i] = (CUdeviceptr)(uintptr_t)(host + i * PITCHED_BYTES);
    sizes_of_parts[i] = PITCHED_BYTES;
  }
  emit("batch", "h2d", size, (double)bytes / best(batch_in, NULL, bytes));
  emit("batch", "d2h", size, (double)bytes / best(batch_out, NULL, bytes));
  free(device_parts);
  free(host_parts);
  free(sizes_of_parts);
}
#else
static void of_batch(char* host, const char* size, size_t count) { (void)host, (void)size, (void)count; }
#endif

static void of_pitched(size_t count) {
  size_t bytes = count * PITCHED_BYTES;
  char size[32];
  void* pinned;
  snprintf(size, sizeof size, "%zux4KiB", count);
  CHECK(CU(cuMemAlloc)(&device, count * PITCH));
  CHECK(CU(cuMemHostAlloc)(&pinned, bytes, 0));
  memset(pinned, 1, bytes);
  emit("pitched", "h2d", size, (double)bytes / best(box_in, pinned, bytes));
  emit("pitched", "d2h", size, (double)bytes / best(box_out, pinned, bytes));
  of_batch(pinned, size, count);
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
  of_pitched(1000);
  of_pitched(10000);
  return 0;
}
