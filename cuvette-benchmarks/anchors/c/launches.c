/* What launches of a kernel with four parameters cost from C: launches PTX. The device is waited for after each series,
 * which is not timed and is shorter than the driver's queue. */
#include "anchor.h"

#define SERIES 256
#define REPETITIONS 6
#define SERIES_A_REPETITION 100

static __typeof__(&cuLaunchKernelEx) launch;
static CUlaunchConfig config;
static CUdeviceptr x, y;

static void* read_all(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) anchor_missing("the PTX cannot be read");
  char* text = calloc(1, 1 << 16);
  if (!fread(text, 1, (1 << 16) - 1, file)) anchor_missing("the PTX is empty");
  fclose(file);
  return text;
}

/* Arguments gathered for each launch. */
static void single(CUfunction kernel) {
  float factor = 1;
  int count = 256;
  void* arguments[] = {&x, &y, &factor, &count};
  CHECK(launch(&config, kernel, arguments, NULL));
}

static CUdeviceptr packed_addresses[2];
static float packed_factor = 1;
static int packed_count = 256;
static void* packed_arguments[] = {packed_addresses, packed_addresses + 1, &packed_factor, &packed_count};

/* Arguments gathered once. */
static void packed(CUfunction kernel) { CHECK(launch(&config, kernel, packed_arguments, NULL)); }

static void measure(const char* work, void (*once)(CUfunction), CUfunction kernel) {
  double best = 1e18;
  for (int r = 0; r <= REPETITIONS; r++) {
    double nanos = 0;
    for (int s = 0; s < SERIES_A_REPETITION; s++) {
      double start = anchor_nanos();
      for (int i = 0; i < SERIES; i++) once(kernel);
      nanos += anchor_nanos() - start;
      CHECK(CU(cuStreamSynchronize)(config.hStream));
    }
    double each = nanos / (SERIES * SERIES_A_REPETITION);
    if (r > 0 && each < best) best = each;
  }
  anchor_emit(work, "nsPerLaunch", best, 1);
}

int main(int count, char** arguments) {
  anchor_open();
  if (count != 2) anchor_missing("usage: launches PTX");
  void* ptx = read_all(arguments[1]);
  CUlibrary library;
  CUkernel kernel;
  CUfunction function;
  CHECK(CU(cuLibraryLoadData)(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
  CHECK(CU(cuLibraryGetKernel)(&kernel, library, "nothingOfFour"));
  CHECK(CU(cuKernelGetFunction)(&function, kernel));
  CHECK(CU(cuMemAlloc)(&x, 1024));
  CHECK(CU(cuMemAlloc)(&y, 1024));
  packed_addresses[0] = x;
  packed_addresses[1] = y;
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  CHECK(CU(cuStreamCreate)(&config.hStream, CU_STREAM_NON_BLOCKING));
  launch = CU(cuLaunchKernelEx);
  /* A kernel of a library, as Cuvette and cuda.core launch it, and the function of one context, for comparison. */
  measure("launch", single, (CUfunction)kernel);
  measure("launch-packed", packed, (CUfunction)kernel);
  measure("launch-of-function", single, function);
  return 0;
}
