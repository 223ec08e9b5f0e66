/* Products of square matrices by cuBLAS, in 10^12 operations a second, and a copy within the device, in GB/s of 10^9 bytes
 * read and written, which stands beside the operations on each element too. All of zeros; many are queued and waited for
 * together. cuBLAS is searched where Cuvette does it: by its name, in the toolkit, in the folder CUVETTE_CUBLAS. */
#include "anchor.h"
#include <string.h>

enum { FLOAT16 = 2, BFLOAT16 = 14, FLOAT32 = 0, FLOAT64 = 1, SUMS_FLOAT32 = 68, SUMS_FLOAT64 = 70, DEFAULT_ALGORITHM = -1 };

typedef int (*create_function)(void** handle);
typedef int (*set_stream_function)(void* handle, CUstream stream);
typedef int (*gemm_function)(void* handle, int by_a, int by_b, int m, int n, int k, const void* alpha, const void* a, int a_type,
                             int lda, const void* b, int b_type, int ldb, const void* beta, void* c, int c_type, int ldc,
                             int sums, int algorithm);

static CUstream stream;
static void* handle;
static gemm_function gemm;

static void* library(void) {
  static const char* const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  const char* const folders[] = {"", "/usr/local/cuda/lib64/", getenv("CUVETTE_CUBLAS")};
  for (size_t f = 0; f < 3 && folders[f]; f++) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      char path[4096];
      snprintf(path, sizeof path, "%s%s%s", folders[f], f == 2 ? "/" : "", names[i]);
      void* found = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
      if (found) return found;
    }
  }
  return NULL;
}

static int open_cublas(void) {
  void* cublas = library();
  if (!cublas) return 0;
  create_function create = (create_function)dlsym(cublas, "cublasCreate_v2");
  set_stream_function set_stream = (set_stream_function)dlsym(cublas, "cublasSetStream_v2");
  gemm = (gemm_function)dlsym(cublas, "cublasGemmEx");
  return create && set_stream && gemm && create(&handle) == 0 && set_stream(handle, stream) == 0;
}

static CUdeviceptr zeros(size_t bytes) {
  CUdeviceptr memory;
  CHECK(CU(cuMemAlloc)(&memory, bytes));
  CHECK(CU(cuMemsetD8)(memory, 0, bytes));
  return memory;
}

static double nanos_of(void (*work)(void*), void* of, int turns) {
  double start = anchor_nanos();
  for (int i = 0; i < turns; i++) work(of);
  CHECK(CU(cuStreamSynchronize)(stream));
  return anchor_nanos() - start;
}

/* Of so many that they take 20 ms, after 0.6 s of them, as Cuvette's program does: a device slows down for its power. */
static double best(void (*work)(void*), void* of) {
  int turns = 1;
  double begin = anchor_nanos();
  while (nanos_of(work, of, turns) < 20e6) turns *= 2;
  while (anchor_nanos() - begin < 600e6) nanos_of(work, of, turns);
  double least = 1e18;
  for (int r = 0; r < 7; r++) {
    double nanos = nanos_of(work, of, turns) / turns;
    if (nanos < least) least = nanos;
  }
  return least;
}

struct product {
  int side, type;
  CUdeviceptr a, b, c;
};

static void multiply(void* of) {
  struct product* p = of;
  float one = 1, zero = 0;
  double one_double = 1, zero_double = 0;
  int is_double = p->type == FLOAT64, n = p->side;
  int status = gemm(handle, 0, 0, n, n, n, is_double ? (void*)&one_double : &one, (void*)p->a, p->type, n, (void*)p->b, p->type,
                    n, is_double ? (void*)&zero_double : &zero, (void*)p->c, p->type, n, is_double ? SUMS_FLOAT64 : SUMS_FLOAT32,
                    DEFAULT_ALGORITHM);
  if (status) {
    fprintf(stderr, "status %d: cublasGemmEx\n", status);
    exit(1);
  }
}

static void product(const char* name, int type, size_t element, int side) {
  size_t bytes = element * (size_t)side * (size_t)side;
  struct product p = {side, type, zeros(bytes), zeros(bytes), zeros(bytes)};
  double operations = 2.0 * side * side * side;
  char work[64];
  snprintf(work, sizeof work, "product-%s-%d", name, side);
  anchor_emit(work, "teraflops", operations / best(multiply, &p) / 1e3, 1);
  CHECK(CU(cuMemFree)(p.a));
  CHECK(CU(cuMemFree)(p.b));
  CHECK(CU(cuMemFree)(p.c));
}

struct copy {
  CUdeviceptr to, from;
  size_t bytes;
};

static void copy(void* of) {
  struct copy* c = of;
  CHECK(CU(cuMemcpyDtoDAsync)(c->to, c->from, c->bytes, stream));
}

int main(void) {
  anchor_open();
  CHECK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  static const char* const works[] = {"array-copy-256MiB", "array-sqrt-256MiB", "array-add-256MiB", "array-less-256MiB",
                                      "array-sum-256MiB"};
  size_t bytes = 256UL << 20;
  struct copy c = {zeros(bytes), zeros(bytes), bytes};
  double gigabytes = 2 * (double)bytes / best(copy, &c);
  for (size_t i = 0; i < sizeof works / sizeof *works; i++) anchor_emit(works[i], "gigabytesPerSecond", gigabytes, 1);
  if (!open_cublas()) {
    fprintf(stderr, "no cuBLAS: set CUVETTE_CUBLAS to its folder\n");
    return 0;
  }
  static const int sides[] = {1024, 4096, 5000};
  for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
    product("float16", FLOAT16, 2, sides[i]);
    product("bfloat16", BFLOAT16, 2, sides[i]);
    product("float32", FLOAT32, 4, sides[i]);
    product("float64", FLOAT64, 8, sides[i]);
  }
  return 0;
}
