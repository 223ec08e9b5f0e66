/* What single driver calls cost from C. */
#include "anchor.h"

int main(void) {
  anchor_open();
  CUcontext current;
  CUstream stream;
  CUevent event;
  CUdeviceptr p;
  int version;
  CHECK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(CU(cuEventCreate)(&event, CU_EVENT_DEFAULT));
  __typeof__(&cuDriverGetVersion) get_version = CU(cuDriverGetVersion);
  __typeof__(&cuCtxGetCurrent) get_current = CU(cuCtxGetCurrent);
  __typeof__(&cuStreamQuery) stream_query = CU(cuStreamQuery);
  __typeof__(&cuEventRecord) event_record = CU(cuEventRecord);
  __typeof__(&cuEventQuery) event_query = CU(cuEventQuery);
  __typeof__(&cuMemAlloc) mem_alloc = CU(cuMemAlloc);
  __typeof__(&cuMemFree) mem_free = CU(cuMemFree);
  MEASURE("call-cuDriverGetVersion", "nsPerCall", 6, 2000000, get_version(&version));
  MEASURE("call-cuCtxGetCurrent", "nsPerCall", 6, 2000000, get_current(&current));
  MEASURE("call-cuStreamQuery", "nsPerCall", 6, 500000, stream_query(stream));
  MEASURE("call-cuEventRecord", "nsPerCall", 6, 100000, event_record(event, stream));
  CHECK(CU(cuStreamSynchronize)(stream));
  MEASURE("call-cuEventQuery", "nsPerCall", 6, 500000, event_query(event));
  MEASURE("call-cuMemAlloc+cuMemFree-1MiB", "nsPerCall", 5, 1000, { mem_alloc(&p, 1 << 20); mem_free(p); });
  __typeof__(&cuMemcpyAsync) memcpy_async = CU(cuMemcpyAsync);
  __typeof__(&cuStreamSynchronize) stream_synchronize = CU(cuStreamSynchronize);
  void *host;
  CHECK(CU(cuMemHostAlloc)(&host, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  CHECK(mem_alloc(&p, 4096));
  int copies = 0;
  MEASURE("call-cuMemcpyAsync-4KiB", "nsPerCall", 6, 25600, {
    memcpy_async(p, (CUdeviceptr)host, 4096, stream);
    if (++copies % 256 == 0) stream_synchronize(stream);
  });
  return 0;
}
