/* Copies of 256 MiB between host and device, pinned and pageable, in GB/s of 10^9 bytes. */
#include "anchor.h"
#include <string.h>

enum { BYTES = 256 << 20 };

#define COPY(work, repetitions, body)                                              \
  do {                                                                             \
    double best_ = 1e18;                                                           \
    for (int r_ = 0; r_ <= (repetitions); r_++) {                                  \
      double start_ = anchor_nanos();                                              \
      body;                                                                        \
      double nanos_ = anchor_nanos() - start_;                                     \
      if (r_ > 0 && nanos_ < best_) best_ = nanos_;                                \
    }                                                                              \
    anchor_emit(work, "gigabytesPerSecond", BYTES / best_, 1);                     \
  } while (0)

int main(void) {
  anchor_open();
  CUdeviceptr device;
  void* pinned;
  CUstream stream;
  CHECK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(CU(cuMemAlloc)(&device, BYTES));
  CHECK(CU(cuMemHostAlloc)(&pinned, BYTES, 0));
  char* pageable = malloc(BYTES);
  memset(pageable, 1, BYTES);
  memset(pinned, 2, BYTES);
  __typeof__(&cuStreamSynchronize) finish = CU(cuStreamSynchronize);
  COPY("copy-pinned-h2d-256MiB", 10, { CHECK(CU(cuMemcpyHtoDAsync)(device, pinned, BYTES, stream)); finish(stream); });
  COPY("copy-pinned-d2h-256MiB", 10, { CHECK(CU(cuMemcpyDtoHAsync)(pinned, device, BYTES, stream)); finish(stream); });
  COPY("copy-pageable-h2d-256MiB", 4, CHECK(CU(cuMemcpyHtoD)(device, pageable, BYTES)));
  COPY("copy-pageable-d2h-256MiB", 4, CHECK(CU(cuMemcpyDtoH)(pageable, device, BYTES)));
  return 0;
}
