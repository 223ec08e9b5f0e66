/*
 * A CUDA driver library that only notes what it is asked: each call with its form (the CUDA version
 * behind the @), the context current on the thread, and its arguments. The answers are set by the
 * test. With HEADERS defined, the signatures are checked against those of cudaTypedefs.h.
 *
 * Variants: OLD_DRIVER has no cuGetProcAddress_v2; TOOLKIT_STUB answers 34 to everything.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HEADERS
#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#undef cuGetProcAddress
#else
typedef int CUresult;
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUlimit;
typedef int CUmem_advise;
typedef int CUmem_range_attribute;
typedef int CUpointer_attribute;
typedef int CUstreamCaptureMode;
typedef int CUstreamCaptureStatus;
typedef int CUdriverProcAddressQueryResult;
typedef unsigned long long CUdeviceptr;
typedef uint64_t cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUuserObject_st *CUuserObject;
typedef struct { char bytes[16]; } CUuuid;
typedef struct { int type; int id; } CUmemLocation;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef int CUmemAllocationType;
typedef int CUmemAllocationHandleType;
typedef int CUmemAccess_flags;
typedef int CUmemPool_attribute;
typedef struct { CUmemLocation location; CUmemAccess_flags flags; } CUmemAccessDesc;
typedef struct {
  CUmemAllocationType allocType;
  CUmemAllocationHandleType handleTypes;
  CUmemLocation location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef int CUmemAllocationGranularity_flags;
typedef struct {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  void *win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
} CUmemAllocationProp;
typedef struct { unsigned char reserved[64]; } CUmemPoolPtrExportData;
typedef struct { char reserved[64]; } CUipcMemHandle;
typedef struct { char reserved[64]; } CUipcEventHandle;
typedef void (*CUhostFn)(void *);
#endif

#define STUB_STATUS 34

/* What the test sees and sets. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char calls[1 << 18];
static size_t calls_length;
static char failing[64], failing_too[64];
static pthread_cond_t let_go = PTHREAD_COND_INITIALIZER;
static char held[64];
static int failing_status;
static char hidden[256];
static int driver_version = 13000;
static int devices = 2;
static uint64_t answers[2];
static int retained[16];
static __thread uint64_t current;
/* How captures meet this thread: 0 global, 1 thread-local, 2 relaxed. */
static __thread int mode;
static char not_relaxed[1 << 14];

void stub_reset(void) {
  calls_length = 0;
  calls[0] = failing[0] = failing_too[0] = not_relaxed[0] = 0;
  answers[0] = answers[1] = 0;
}
const char *stub_calls(void) { return calls; }
/* Calls of the function fail; with an @ in it, those that are noted with such a start. */
void stub_fail(const char *name, int status) {
  snprintf(failing, sizeof failing, strchr(name, '@') ? "%s" : "%s@", name);
  failing_too[0] = 0;
  failing_status = status;
}
/* Calls of another function fail as well. */
void stub_fail_too(const char *name) { snprintf(failing_too, sizeof failing_too, "%s@", name); }
/* Calls of the function stay in it, until another name or none is given. */
void stub_hold(const char *name) {
  pthread_mutex_lock(&lock);
  snprintf(held, sizeof held, "%s", name);
  pthread_cond_broadcast(&let_go);
  pthread_mutex_unlock(&lock);
}
void stub_hide(const char *name) { snprintf(hidden, sizeof hidden, "%s", name); }
void stub_version(int version) { driver_version = version; }
void stub_devices(int count) { devices = count; }
void stub_answer(uint64_t first, uint64_t second) { answers[0] = first; answers[1] = second; }
void stub_make_current(uint64_t context) { current = context; }
uint64_t stub_current(void) { return current; }
/* The calls since the last reset that a capture could have forbidden. */
const char *stub_not_relaxed(void) { return not_relaxed; }
int stub_mode(void) { return mode; }
void stub_set_mode(int value) { mode = value; }
int stub_retained(int ordinal) { return retained[ordinal]; }

static int note(const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&lock);
  int length = snprintf(calls + calls_length, sizeof calls - calls_length, "%s in %llx\n", line,
                        (unsigned long long)current);
  if (calls_length + length < sizeof calls) calls_length += length;
  if (mode != 2 && strlen(not_relaxed) + length < sizeof not_relaxed) {
    strncat(not_relaxed, line, strcspn(line, "("));
    strcat(not_relaxed, "\n");
  }
  size_t name = strcspn(line, "@");
  while (held[0] && strlen(held) == name && strncmp(line, held, name) == 0) {
    pthread_cond_wait(&let_go, &lock);
  }
  pthread_mutex_unlock(&lock);
  /* For processes that nobody can ask afterwards. */
  const char *printed = getenv("STUB_PRINT");
  if (printed && strstr(line, printed)) fprintf(stderr, "%s\n", line);
#ifdef TOOLKIT_STUB
  return STUB_STATUS;
#else
  int too = failing_too[0] && strncmp(line, failing_too, strlen(failing_too)) == 0;
  return too || (failing[0] && strncmp(line, failing, strlen(failing)) == 0) ? failing_status : 0;
#endif
}

#define NOTE(...) do { int status_ = note(__VA_ARGS__); if (status_) return status_; } while (0)
#define U(value) ((unsigned long long)(uintptr_t)(value))
/* A CUdevice is not its ordinal here, so that mixing them up shows. */
#define HANDLE(ordinal) ((ordinal) + 40)

/* devices */
static CUresult cuInit_v2000(unsigned flags) {
  NOTE("cuInit@2000(%u)", flags);
  return 0;
}
static CUresult cuDriverGetVersion_v2020(int *out) {
  NOTE("cuDriverGetVersion@2020()");
  *out = driver_version;
  return 0;
}
static CUresult cuDeviceGetCount_v2000(int *out) {
  NOTE("cuDeviceGetCount@2000()");
  *out = devices;
  return 0;
}
static CUresult cuDeviceGet_v2000(CUdevice *out, int ordinal) {
  NOTE("cuDeviceGet@2000(%d)", ordinal);
  *out = HANDLE(ordinal);
  return 0;
}
static CUresult cuDeviceGetName_v2000(char *out, int bytes, CUdevice device) {
  NOTE("cuDeviceGetName@2000(%d, %d)", bytes, device);
  snprintf(out, bytes, "Stub %d", device);
  return 0;
}
static CUresult cuDeviceGetUuid_v11040(CUuuid *out, CUdevice device) {
  NOTE("cuDeviceGetUuid@11040(%d)", device);
  for (int i = 0; i < 16; i++) out->bytes[i] = (char)(0xf0 + i);
  return 0;
}
static CUresult cuDeviceTotalMem_v3020(size_t *out, CUdevice device) {
  NOTE("cuDeviceTotalMem@3020(%d)", device);
  *out = answers[0];
  return 0;
}
static CUresult cuDeviceGetAttribute_v2000(int *out, CUdevice_attribute attribute, CUdevice device) {
  NOTE("cuDeviceGetAttribute@2000(%d, %d)", (int)attribute, device);
  *out = (int)answers[0];
  return 0;
}
static CUresult cuDeviceGetPCIBusId_v4010(char *out, int bytes, CUdevice device) {
  NOTE("cuDeviceGetPCIBusId@4010(%d, %d)", bytes, device);
  snprintf(out, bytes, "0000:1b:00.0");
  return 0;
}
static CUresult cuDeviceGetByPCIBusId_v4010(CUdevice *out, const char *id) {
  NOTE("cuDeviceGetByPCIBusId@4010(%s)", id);
  *out = (int)answers[0];
  return 0;
}
static CUresult cuDeviceCanAccessPeer_v4000(int *out, CUdevice device, CUdevice peer) {
  NOTE("cuDeviceCanAccessPeer@4000(%d, %d)", device, peer);
  *out = (int)answers[0];
  return 0;
}

/* contexts: the one of device 0 is c000, of device 1 c001 */
static CUresult cuDevicePrimaryCtxRetain_v7000(CUcontext *out, CUdevice device) {
  NOTE("cuDevicePrimaryCtxRetain@7000(%d)", device);
  __sync_fetch_and_add(&retained[device - HANDLE(0)], 1);
  *out = (CUcontext)(uintptr_t)(0xc000 + device - HANDLE(0));
  return 0;
}
static CUresult cuDevicePrimaryCtxGetState_v7000(CUdevice device, unsigned *flags, int *active) {
  NOTE("cuDevicePrimaryCtxGetState@7000(%d)", device);
  *flags = 0;
  *active = retained[device - HANDLE(0)] > 0;
  return 0;
}
static CUresult cuDevicePrimaryCtxRelease_v11000(CUdevice device) {
  NOTE("cuDevicePrimaryCtxRelease@11000(%d)", device);
  __sync_fetch_and_sub(&retained[device - HANDLE(0)], 1);
  return 0;
}
/* Calls that are not noted fail by their name too. */
static int fails(const char *name) { return strncmp(failing, name, strlen(failing)) == 0 && failing[0] ? failing_status : 0; }
static CUresult cuCtxGetCurrent_v4000(CUcontext *out) {
  *out = (CUcontext)(uintptr_t)current;
  return fails("cuCtxGetCurrent@");
}
static CUresult cuCtxSetCurrent_v4000(CUcontext context) {
  NOTE("cuCtxSetCurrent@4000(%llx)", U(context));
  current = (uint64_t)(uintptr_t)context;
  return 0;
}
static CUresult cuCtxGetDevice_v2000(CUdevice *out) {
  NOTE("cuCtxGetDevice@2000()");
  *out = (int)answers[1];
  return 0;
}
static CUresult cuCtxSynchronize_v2000(void) {
  NOTE("cuCtxSynchronize@2000()");
  return 0;
}
static CUresult cuCtxSynchronize_v13000(CUcontext context) {
  NOTE("cuCtxSynchronize@13000(%llx)", U(context));
  return 0;
}
static CUresult cuCtxGetStreamPriorityRange_v5050(int *least, int *greatest) {
  NOTE("cuCtxGetStreamPriorityRange@5050()");
  *least = (int)answers[0]; *greatest = (int)answers[1];
  return 0;
}
static CUresult cuCtxGetLimit_v3010(size_t *out, CUlimit limit) {
  NOTE("cuCtxGetLimit@3010(%d)", (int)limit);
  *out = answers[0];
  return 0;
}
static CUresult cuCtxSetLimit_v3010(CUlimit limit, size_t value) {
  NOTE("cuCtxSetLimit@3010(%d, %zu)", (int)limit, value);
  return 0;
}
static CUresult cuProfilerStart_v4000(void) {
  NOTE("cuProfilerStart@4000()");
  return 0;
}
static CUresult cuProfilerStop_v4000(void) {
  NOTE("cuProfilerStop@4000()");
  return 0;
}
static CUresult cuCtxEnablePeerAccess_v4000(CUcontext peer, unsigned flags) {
  NOTE("cuCtxEnablePeerAccess@4000(%llx, %u)", U(peer), flags);
  return 0;
}
static CUresult cuCtxDisablePeerAccess_v4000(CUcontext peer) {
  NOTE("cuCtxDisablePeerAccess@4000(%llx)", U(peer));
  return 0;
}

/* memory */
static CUresult cuMemAlloc_v3020(CUdeviceptr *out, size_t bytes) {
  NOTE("cuMemAlloc@3020(%zu)", bytes);
  *out = answers[0] ? answers[0] : 3 * bytes;
  return 0;
}
static CUresult cuMemFree_v3020(CUdeviceptr address) {
  NOTE("cuMemFree@3020(%llx)", address);
  return 0;
}
static CUresult cuMemHostAlloc_v2020(void **out, size_t bytes, unsigned flags) {
  NOTE("cuMemHostAlloc@2020(%zu, %u)", bytes, flags);
  *out = calloc(1, bytes);
  return 0;
}
static CUresult cuMemFreeHost_v2000(void *address) {
  NOTE("cuMemFreeHost@2000(%llx)", U(address));
  return 0;
}
static CUresult cuMemHostRegister_v6050(void *address, size_t bytes, unsigned flags) {
  NOTE("cuMemHostRegister@6050(%llx, %zu, %u)", U(address), bytes, flags);
  return 0;
}
static CUresult cuMemHostUnregister_v4000(void *address) {
  NOTE("cuMemHostUnregister@4000(%llx)", U(address));
  return 0;
}
static CUresult cuMemAllocManaged_v6000(CUdeviceptr *out, size_t bytes, unsigned flags) {
  NOTE("cuMemAllocManaged@6000(%zu, %u)", bytes, flags);
  *out = (CUdeviceptr)(uintptr_t)calloc(1, bytes);
  return 0;
}
static CUresult cuMemGetInfo_v3020(size_t *free_bytes, size_t *total) {
  NOTE("cuMemGetInfo@3020()");
  *free_bytes = answers[0];
  *total = answers[1];
  return 0;
}
static CUresult cuPointerGetAttribute_v4000(void *out, CUpointer_attribute attribute, CUdeviceptr address) {
  NOTE("cuPointerGetAttribute@4000(%d, %llx)", (int)attribute, address);
  if (attribute == 9) *(int *)out = (int)answers[0]; else *(uint64_t *)out = answers[0];
  return 0; }
static CUresult cuMemRangeGetAttribute_v8000(void *out, size_t size, CUmem_range_attribute attribute,
      CUdeviceptr address, size_t bytes) {
  NOTE("cuMemRangeGetAttribute@8000(%zu, %d, %llx, %zu)", size, (int)attribute, address,
      bytes); memcpy(out, answers, size < sizeof answers ? size : sizeof answers);
  return 0;
}
static CUresult cuMemPrefetchAsync_v8000(CUdeviceptr address, size_t bytes, CUdevice device,
      CUstream stream) {
  NOTE("cuMemPrefetchAsync@8000(%llx, %zu, %d, %llx)", address, bytes, device, U(stream));
  return 0;
}
static CUresult cuMemPrefetchAsync_v12020(CUdeviceptr address, size_t bytes, CUmemLocation place,
      unsigned flags, CUstream stream) {
  NOTE("cuMemPrefetchAsync@12020(%llx, %zu, {%d, %d}, %u, %llx)", address, bytes, (int)place.type,
      place.id, flags, U(stream));
  return 0;
}
static CUresult cuMemAdvise_v8000(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
  NOTE("cuMemAdvise@8000(%llx, %zu, %d, %d)", address, bytes, (int)advice, device);
  return 0;
}
static CUresult cuMemAdvise_v12020(CUdeviceptr address, size_t bytes, CUmem_advise advice,
      CUmemLocation place) {
  NOTE("cuMemAdvise@12020(%llx, %zu, %d, {%d, %d})", address, bytes, (int)advice, (int)place.type, place.id);
  return 0;
}

#include "stub_pools.h"
#include "stub_ipc.h"
#include "stub_virtual.h"
#include "stub_kernels.h"

/* copies and fills */
static CUresult cuMemcpyAsync_v4000(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NOTE("cuMemcpyAsync@4000(%llx, %llx, %zu, %llx)", to, from, bytes, U(stream));
  return 0;
}
static CUresult cuMemcpyHtoDAsync_v3020(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  NOTE("cuMemcpyHtoDAsync@3020(%llx, %s, %zu, %llx)", to, (const char *)from, bytes, U(stream));
  return 0;
}
static CUresult cuMemcpyDtoHAsync_v3020(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NOTE("cuMemcpyDtoHAsync@3020(%llx, %zu, %llx)", from, bytes, U(stream));
  memset(to, 7, bytes);
  return 0;
}
static CUresult cuMemcpyPeerAsync_v4000(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
      CUcontext from_context, size_t bytes, CUstream stream) {
  NOTE("cuMemcpyPeerAsync@4000(%llx, %llx, %llx, %llx, %zu, %llx)", to, U(to_context), from,
      U(from_context), bytes, U(stream));
  return 0;
}
/* The whole register is noted: a callee may trust that a small value was widened with zeros. */
#ifdef HEADERS
#define WIDENED(type) unsigned type
#else
#define WIDENED(type) unsigned
#endif
static CUresult cuMemsetD8Async_v3020(CUdeviceptr to, WIDENED(char) value, size_t count, CUstream stream) {
  NOTE("cuMemsetD8Async@3020(%llx, %u, %zu, %llx)", to, value, count, U(stream));
  return 0;
}
static CUresult cuMemsetD16Async_v3020(CUdeviceptr to, WIDENED(short) value, size_t count, CUstream stream) {
  NOTE("cuMemsetD16Async@3020(%llx, %u, %zu, %llx)", to, value, count, U(stream));
  return 0;
}
static CUresult cuMemsetD32Async_v3020(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  NOTE("cuMemsetD32Async@3020(%llx, %u, %zu, %llx)", to, value, count, U(stream));
  return 0;
}

/* streams */
static CUresult cuStreamCreateWithPriority_v5050(CUstream *out, unsigned flags, int priority) {
  NOTE("cuStreamCreateWithPriority@5050(%u, %d)", flags, priority);
  *out = (CUstream)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuStreamDestroy_v4000(CUstream stream) {
  NOTE("cuStreamDestroy@4000(%llx)", U(stream));
  return 0;
}
static CUresult cuStreamGetPriority_v5050(CUstream stream, int *out) {
  NOTE("cuStreamGetPriority@5050(%llx)", U(stream));
  *out = (int)answers[0];
  return 0;
}
static CUresult cuStreamGetFlags_v5050(CUstream stream, unsigned *out) {
  NOTE("cuStreamGetFlags@5050(%llx)", U(stream));
  *out = (unsigned)answers[0];
  return 0;
}
static CUresult cuStreamGetId_v12000(CUstream stream, unsigned long long *out) {
  NOTE("cuStreamGetId@12000(%llx)", U(stream));
  *out = answers[0];
  return 0;
}
static CUresult cuStreamGetCtx_v9020(CUstream stream, CUcontext *out) {
  NOTE("cuStreamGetCtx@9020(%llx)", U(stream));
  *out = (CUcontext)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuStreamGetDevice_v12080(CUstream stream, CUdevice *out) {
  NOTE("cuStreamGetDevice@12080(%llx)", U(stream));
  *out = (int)answers[0];
  return 0;
}
static CUresult cuStreamSynchronize_v2000(CUstream stream) {
  NOTE("cuStreamSynchronize@2000(%llx)", U(stream));
  return 0;
}
static CUresult cuStreamWaitEvent_v3020(CUstream stream, CUevent event, unsigned flags) {
  NOTE("cuStreamWaitEvent@3020(%llx, %llx, %u)", U(stream), U(event), flags);
  return 0;
}

struct host_call { CUhostFn function; void *data; struct host_call *next; };
/* With STUB_HOST_THREAD one thread runs the functions, and ends where the process exits. */
static struct host_call *host_calls;
static pthread_t host_thread;
static int host_thread_runs, host_thread_stops;
static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t host_more = PTHREAD_COND_INITIALIZER;
static void *run_host_calls(void *argument) {
  pthread_mutex_lock(&host_lock);
  for (;;) {
    while (!host_calls && !host_thread_stops) pthread_cond_wait(&host_more, &host_lock);
    struct host_call *call = host_calls;
    if (!call) break;
    pthread_mutex_unlock(&host_lock);
    call->function(call->data);
    pthread_mutex_lock(&host_lock);
    host_calls = call->next;
    free(call);
  }
  pthread_mutex_unlock(&host_lock);
  return argument;
}
static int queue_host_call(struct host_call *call) {
  if (!getenv("STUB_HOST_THREAD")) return 0;
  pthread_mutex_lock(&host_lock);
  struct host_call **end = &host_calls;
  while (*end) end = &(*end)->next;
  *end = call;
  if (!host_thread_runs) host_thread_runs = pthread_create(&host_thread, NULL, run_host_calls, NULL) == 0;
  pthread_cond_signal(&host_more);
  pthread_mutex_unlock(&host_lock);
  return 1;
}
__attribute__((destructor)) static void end_host_thread(void) {
  if (!host_thread_runs) return;
  pthread_mutex_lock(&host_lock);
  host_thread_stops = 1;
  pthread_cond_signal(&host_more);
  pthread_mutex_unlock(&host_lock);
  pthread_join(host_thread, NULL);
}
static void *run_host_call(void *argument) {
  struct host_call call = *(struct host_call *)argument;
  free(argument);
  call.function(call.data);
  return NULL;
}
struct host_call launched;
void stub_run_launched_function(void) { launched.function(launched.data); }
static CUresult cuLaunchHostFunc_v10000(CUstream stream, CUhostFn function, void *data) {
  NOTE("cuLaunchHostFunc@10000(%llx)", U(stream));
  launched = (struct host_call){function, data, NULL};
  struct host_call *call = malloc(sizeof *call);
  *call = (struct host_call){function, data, NULL};
  if (queue_host_call(call)) return 0;
  pthread_t thread;
  pthread_create(&thread, NULL, run_host_call, call);
  pthread_detach(thread);
  return 0; }

static CUresult cuStreamQuery_v2000(CUstream stream) {
  NOTE("cuStreamQuery@2000(%llx)", U(stream));
  pthread_mutex_lock(&host_lock);
  CUresult status = host_calls ? 600 : 0;
  pthread_mutex_unlock(&host_lock);
  return status;
}

/* events */
static CUresult cuEventCreate_v2000(CUevent *out, unsigned flags) {
  NOTE("cuEventCreate@2000(%u)", flags);
  *out = (CUevent)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuEventDestroy_v4000(CUevent event) {
  NOTE("cuEventDestroy@4000(%llx)", U(event));
  return 0;
}
static CUresult cuEventRecord_v2000(CUevent event, CUstream stream) {
  NOTE("cuEventRecord@2000(%llx, %llx)", U(event), U(stream));
  return 0;
}
static CUresult cuEventQuery_v2000(CUevent event) {
  NOTE("cuEventQuery@2000(%llx)", U(event));
  return 0;
}
static CUresult cuEventSynchronize_v2000(CUevent event) {
  NOTE("cuEventSynchronize@2000(%llx)", U(event));
  return 0;
}
static CUresult cuEventElapsedTime_v2000(float *out, CUevent start, CUevent end) {
  NOTE("cuEventElapsedTime@2000(%llx, %llx)", U(start), U(end));
  *out = 1.5f;
  return 0;
}
static CUresult cuEventElapsedTime_v12080(float *out, CUevent start, CUevent end) {
  NOTE("cuEventElapsedTime@12080(%llx, %llx)", U(start), U(end));
  *out = 1.5f;
  return 0;
}

/* capture */
static CUresult cuStreamBeginCapture_v10010(CUstream stream, CUstreamCaptureMode mode) {
  NOTE("cuStreamBeginCapture@10010(%llx, %d)", U(stream), (int)mode);
  return 0;
}
static CUresult cuStreamEndCapture_v10000(CUstream stream, CUgraph *out) {
  NOTE("cuStreamEndCapture@10000(%llx)", U(stream));
  *out = (CUgraph)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuStreamIsCapturing_v10000(CUstream stream, CUstreamCaptureStatus *out) {
  NOTE("cuStreamIsCapturing@10000(%llx)", U(stream));
  *out = (CUstreamCaptureStatus)answers[0];
  return 0;
}
static CUresult cuThreadExchangeStreamCaptureMode_v10010(CUstreamCaptureMode *value) {
  int status = fails("cuThreadExchangeStreamCaptureMode@"), previous = mode;
  if (status) return status;
  mode = (int)*value;
  *value = (CUstreamCaptureMode)previous;
  return 0;
}
static CUresult cuStreamGetCaptureInfo_v11030(CUstream stream, CUstreamCaptureStatus *status,
                                              cuuint64_t *id, CUgraph *graph,
                                              const CUgraphNode **nodes, size_t *count) {
  NOTE("cuStreamGetCaptureInfo@11030(%llx, %llx, %llx)", U(stream), U(nodes), U(count));
  *status = (CUstreamCaptureStatus)(answers[0] ? 1 : 2);
  *id = answers[0]; *graph = (CUgraph)(uintptr_t)answers[1];
  return 0;
}
static CUhostFn destructor;
static void *destructor_argument;
void stub_destroy_user_object(void) { destructor(destructor_argument); }
static CUresult cuUserObjectCreate_v11030(CUuserObject *out, void *argument, CUhostFn destroy,
                                          unsigned count, unsigned flags) {
  NOTE("cuUserObjectCreate@11030(%u, %u)", count, flags);
  destructor = destroy; destructor_argument = argument;
  *out = (CUuserObject)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuUserObjectRelease_v11030(CUuserObject object, unsigned count) {
  NOTE("cuUserObjectRelease@11030(%llx, %u)", U(object), count);
  return 0;
}
static CUresult cuGraphRetainUserObject_v11030(CUgraph graph, CUuserObject object, unsigned count,
                                               unsigned flags) {
  NOTE("cuGraphRetainUserObject@11030(%llx, %llx, %u, %u)", U(graph), U(object), count, flags);
  return 0;
}
static CUresult cuGraphLaunch_v10000(CUgraphExec executable, CUstream stream) {
  NOTE("cuGraphLaunch@10000(%llx, %llx)", U(executable), U(stream));
  return 0;
}
static CUresult cuGraphExecDestroy_v10000(CUgraphExec executable) {
  NOTE("cuGraphExecDestroy@10000(%llx)", U(executable));
  return 0;
}
static CUresult cuGraphDestroy_v10000(CUgraph graph) {
  NOTE("cuGraphDestroy@10000(%llx)", U(graph));
  return 0;
}

/* Allocators that somebody else wrote. */
uint64_t stub_malloc(void *parameter, size_t bytes, int device) { note("malloc(%llx, %zu, %d)",
      U(parameter), bytes, device); return answers[0]; }
void stub_free(void *parameter, void *address, int device) { note("free(%llx, %llx, %d)", U(parameter),
      U(address), device); }

#define FORMS(X) \
  X(cuInit, 2000) X(cuDriverGetVersion, 2020) X(cuDeviceGetCount, 2000) X(cuDeviceGet, 2000) \
  X(cuDeviceGetName, 2000) X(cuDeviceGetUuid, 11040) X(cuDeviceTotalMem, 3020) \
  X(cuDeviceGetAttribute, 2000) X(cuDeviceGetPCIBusId, 4010) X(cuDeviceGetByPCIBusId, 4010) \
  X(cuDeviceCanAccessPeer, 4000) X(cuDevicePrimaryCtxRetain, 7000) \
  X(cuDevicePrimaryCtxGetState, 7000) \
  X(cuDevicePrimaryCtxRelease, 11000) X(cuCtxGetCurrent, 4000) X(cuCtxSetCurrent, 4000) \
  X(cuCtxGetDevice, 2000) X(cuCtxSynchronize, 2000) X(cuCtxSynchronize, 13000) \
  X(cuCtxGetStreamPriorityRange, 5050) X(cuCtxGetLimit, 3010) X(cuCtxSetLimit, 3010) \
  X(cuProfilerStart, 4000) X(cuProfilerStop, 4000) \
  X(cuCtxEnablePeerAccess, 4000) X(cuCtxDisablePeerAccess, 4000) X(cuMemAlloc, 3020) \
  X(cuMemFree, 3020) X(cuMemHostAlloc, 2020) X(cuMemFreeHost, 2000) X(cuMemAllocManaged, 6000) \
  X(cuMemHostRegister, 6050) X(cuMemHostUnregister, 4000) \
  X(cuMemGetInfo, 3020) X(cuPointerGetAttribute, 4000) X(cuMemRangeGetAttribute, 8000) \
  X(cuMemPrefetchAsync, 8000) X(cuMemPrefetchAsync, 12020) X(cuMemAdvise, 8000) \
  X(cuMemAdvise, 12020) X(cuMemcpyAsync, 4000) X(cuMemcpyHtoDAsync, 3020) \
  X(cuMemcpyDtoHAsync, 3020) X(cuMemcpyPeerAsync, 4000) X(cuMemsetD8Async, 3020) \
  X(cuMemsetD16Async, 3020) X(cuMemsetD32Async, 3020) X(cuStreamCreateWithPriority, 5050) \
  X(cuStreamDestroy, 4000) X(cuStreamGetPriority, 5050) X(cuStreamGetFlags, 5050) \
  X(cuStreamGetId, 12000) X(cuStreamGetCtx, 9020) X(cuStreamGetDevice, 12080) \
  X(cuStreamQuery, 2000) X(cuStreamSynchronize, 2000) X(cuStreamWaitEvent, 3020) \
  X(cuLaunchHostFunc, 10000) X(cuEventCreate, 2000) X(cuEventDestroy, 4000) \
  X(cuEventRecord, 2000) X(cuEventQuery, 2000) X(cuEventSynchronize, 2000) \
  X(cuEventElapsedTime, 2000) X(cuEventElapsedTime, 12080) X(cuStreamBeginCapture, 10010) \
  X(cuStreamEndCapture, 10000) X(cuStreamIsCapturing, 10000) X(cuGraphDestroy, 10000) \
  X(cuThreadExchangeStreamCaptureMode, 10010) X(cuStreamGetCaptureInfo, 11030) \
  X(cuUserObjectCreate, 11030) X(cuUserObjectRelease, 11030) \
  X(cuGraphRetainUserObject, 11030) \
  X(cuGraphLaunch, 10000) X(cuGraphExecDestroy, 10000)

#include "stub_graphs.h"
#include "stub_nodes.h"

/* Other forms of the same functions, with other parameters: nobody should ask for them. */
#define WRONG_FORMS(X) \
  X(cuDeviceGetUuid, 9020) X(cuDeviceTotalMem, 2000) X(cuDevicePrimaryCtxRelease, 7000) \
  X(cuCtxGetDevice, 13000) X(cuMemAlloc, 2000) X(cuMemFree, 2000) X(cuMemGetInfo, 2000) \
  X(cuMemcpyHtoDAsync, 2000) X(cuMemcpyDtoHAsync, 2000) X(cuMemcpy3DAsync, 2000) X(cuStreamDestroy, 2000) \
  X(cuStreamGetCtx, 12050) X(cuEventDestroy, 2000) X(cuStreamBeginCapture, 10000) \
  X(cuIpcOpenMemHandle, 4010) X(cuStreamGetCaptureInfo, 10010) \
  X(cuGraphAddKernelNode, 10000) X(cuGraphKernelNodeGetParams, 10000) \
  X(cuGraphKernelNodeSetParams, 10000) X(cuGraphExecKernelNodeSetParams, 10010) \
  X(cuGraphAddNode, 12020) X(cuStreamUpdateCaptureDependencies, 11030)

static CUresult wrong_form(void) {
  NOTE("WRONG FORM");
  return 999; }

#ifdef HEADERS
#define CHECK(name, version) PFN_##name##_v##version check_##name##_v##version = name##_v##version;
FORMS(CHECK) POOL_FORMS(CHECK) IPC_FORMS(CHECK) VIRTUAL_FORMS(CHECK) KERNEL_FORMS(CHECK) GRAPH_FORMS(CHECK) NODE_FORMS(CHECK)
#endif

#ifndef OLD_DRIVER
#define FORM(name, version) {#name, version, (void *)name##_v##version},
#define WRONG_FORM(name, version) {#name, version, (void *)wrong_form},
static const struct { const char *name; int version; void *function; } forms[] = {
  FORMS(FORM) POOL_FORMS(FORM) IPC_FORMS(FORM) VIRTUAL_FORMS(FORM) KERNEL_FORMS(FORM) GRAPH_FORMS(FORM) NODE_FORMS(FORM)
  WRONG_FORMS(WRONG_FORM)
};
#endif

#ifdef OLD_DRIVER
int cuDriverGetVersion(int *out) { *out = 11080;
  return 0;
}
#else
CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *found) {
#ifdef TOOLKIT_STUB
  return STUB_STATUS;
#endif
  *out = (void *)16; /* what a call that fails leaves is no function */
  if (flags != 1 || version > driver_version) return 1;
  *out = NULL;
  int best = 0;
  int known = strcmp(name, hidden) != 0;
  for (size_t i = 0; known && i < sizeof forms / sizeof *forms; i++) {
    if (strcmp(forms[i].name, name) == 0 && forms[i].version <= version && forms[i].version > best) {
      best = forms[i].version;
      *out = forms[i].function;
    }
  }
  *found = *out ? 0 : known ? 2 : 1;
  return 0;
}
#endif
