/*
 * A CUDA driver library for machines without a GPU: memory is host memory that cannot be touched any more
 * once it is freed, and work runs behind the caller's back, on a thread for each stream. So what crashes
 * with a GPU crashes here: a use after free, a copy from host memory that is gone, a destroyed handle.
 *
 * Environment: STANDIN_DELAY, microseconds before each piece of work; STANDIN_DEVICES; STANDIN_MEMORY, bytes
 * of each device; STANDIN_MISUSE=count refuses destroyed handles instead of aborting.
 */
#include "standin.h"
#include "standin_captures.h"

__attribute__((constructor)) static void start(void) {
  const char *text;
  if ((text = getenv("STANDIN_DELAY"))) delay_micros = atol(text);
  if ((text = getenv("STANDIN_DEVICES"))) devices = atoi(text);
  if ((text = getenv("STANDIN_MEMORY"))) capacity = strtoull(text, NULL, 10);
  if ((text = getenv("STANDIN_MISUSE"))) aborts = strcmp(text, "count") != 0;
  for (uint64_t size = 1ull << 44; size >= 1ull << 32 && !arena_end; size >>= 2) {
    void *room = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room != MAP_FAILED) arena = U(room), arena_end = arena + size;
  }
  for (int i = 0; i < devices; i++) {
    default_pools[i] = (struct pool){.device = i, .flags = {0, 1, 1, 1}};
    default_pools[i].access[i] = 3;
    default_pools[i].handle = new_handle(POOL, &default_pools[i]);
    current_pools[i] = &default_pools[i];
  }
}
/* After main has returned, or exit was called, the driver answers no more. */
__attribute__((destructor)) static void finish(void) { finished = 1; }

/* What tests ask: 0 misuses, 1 streams, 2 events, 3 bytes of devices, 4 blocks of host memory. */
long standin_count(int what) {
  CALL;
  long bytes = 0;
  for (int i = 0; i < devices; i++) bytes += (long)used_bytes[i];
  long all[] = {misuses, live_streams, live_events, bytes, live_host};
  RETURN(all[what]);
}

/* devices */
static int exists(CUdevice device) { return device >= 0 && device < devices; }
static CUresult cuInit_v2000(unsigned flags) { return finished ? DEINITIALIZED : flags ? INVALID_VALUE : 0; }
static CUresult cuDriverGetVersion_v2020(int *out) { *out = 13000; return 0; }
static CUresult cuDeviceGetCount_v2000(int *out) { *out = devices; return 0; }
static CUresult cuDeviceGet_v2000(CUdevice *out, int ordinal) {
  *out = ordinal;
  return exists(ordinal) ? 0 : INVALID_DEVICE;
}
static CUresult cuDeviceGetName_v2000(char *out, int bytes, CUdevice device) {
  if (exists(device)) snprintf(out, bytes, "Stand-in %d", device);
  return exists(device) ? 0 : INVALID_DEVICE;
}
static CUresult cuDeviceGetUuid_v11040(CUuuid *out, CUdevice device) {
  memset(out->bytes, 0x50 + device, sizeof out->bytes);
  return exists(device) ? 0 : INVALID_DEVICE;
}
static CUresult cuDeviceTotalMem_v3020(size_t *out, CUdevice device) {
  *out = capacity;
  return exists(device) ? 0 : INVALID_DEVICE;
}
static CUresult cuDeviceGetAttribute_v2000(int *out, CUdevice_attribute attribute, CUdevice device) {
  if (!exists(device)) return INVALID_DEVICE;
  if ((int)attribute < 1 || (int)attribute > 200) return INVALID_VALUE;
  switch ((int)attribute) {
    case 75: *out = 9; break; /* compute capability */
    case 33: *out = 0; break;
    case 50: *out = device; break; /* PCI domain */
    case 41: case 83: case 89: case 115: case 122: *out = 1; break; /* unified, managed, concurrent, pools, wait */
    default: *out = 0;
  }
  return 0;
}
static CUresult cuDeviceGetPCIBusId_v4010(char *out, int bytes, CUdevice device) {
  if (exists(device)) snprintf(out, bytes, "%04x:1b:00.0", device);
  return exists(device) ? 0 : INVALID_DEVICE;
}
static CUresult cuDeviceGetByPCIBusId_v4010(CUdevice *out, const char *id) {
  unsigned domain, bus, slot_number, function;
  if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot_number, &function) != 4) return INVALID_VALUE;
  *out = (int)domain;
  return bus == 0x1b && exists((int)domain) ? 0 : INVALID_DEVICE;
}
static CUresult cuDeviceCanAccessPeer_v4000(int *out, CUdevice device, CUdevice peer) {
  *out = device != peer;
  return exists(device) && exists(peer) ? 0 : INVALID_DEVICE;
}

/* contexts: one for each device, gone with all it has when nobody retains it */
#define CONTEXT_HANDLE(device) ((CUcontext)(uintptr_t)(0xc0de00 + (device)))
static CUresult cuDevicePrimaryCtxRetain_v7000(CUcontext *out, CUdevice device) {
  if (!exists(device)) return INVALID_DEVICE;
  CALL;
  retained[device]++;
  *out = CONTEXT_HANDLE(device);
  RETURN(0);
}
static CUresult cuDevicePrimaryCtxRelease_v11000(CUdevice device) {
  if (finished) return DEINITIALIZED;
  CALL;
  if (!exists(device) || !retained[device]) RETURN(INVALID_CONTEXT);
  if (--retained[device]) RETURN(0);
  await_device(device);
  for (size_t i = 0; i < handle_count; i++) {
    struct stream *stream = object_of((void *)(0x5700000000ull + 16 * i), STREAM);
    struct event *event = object_of((void *)(0x5700000000ull + 16 * i), EVENT);
    if ((stream && stream->device == device) || (event && event->device == device)) handles[i].object = NULL;
    if (event && event->device == device) live_events--;
    if (stream && stream->device == device) end_stream(stream);
  }
  for (struct block *b = blocks, *next; b; b = next) {
    next = b->next;
    if (b->device == device) drop_block(b);
  }
  RETURN(0);
}
static CUresult cuCtxGetCurrent_v4000(CUcontext *out) {
  *out = current ? CONTEXT_HANDLE(current - 1) : NULL;
  return finished ? DEINITIALIZED : 0;
}
static CUresult cuCtxSetCurrent_v4000(CUcontext context) {
  int device = context ? (int)(U(context) - U(CONTEXT_HANDLE(0))) : -1;
  if (context && (!exists(device) || !retained[device])) return INVALID_CONTEXT;
  current = device + 1;
  return finished ? DEINITIALIZED : 0;
}
static CUresult cuCtxGetDevice_v2000(CUdevice *out) { *out = current - 1; return current ? 0 : INVALID_CONTEXT; }
static CUresult cuCtxSynchronize_v13000(CUcontext context) {
  int device = (int)(U(context) - U(CONTEXT_HANDLE(0)));
  if (finished) return DEINITIALIZED;
  CALL;
  if (!exists(device) || !retained[device]) RETURN(INVALID_CONTEXT);
  if (disturbs(1)) RETURN(CAPTURE_UNSUPPORTED);
  await_device(device);
  RETURN(0);
}
static CUresult cuCtxSynchronize_v2000(void) { return cuCtxSynchronize_v13000(CONTEXT_HANDLE(current - 1)); }
static CUresult cuCtxGetStreamPriorityRange_v5050(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return current ? 0 : INVALID_CONTEXT;
}
static size_t limits[8] = {1024, 1 << 20, 8 << 20};
static CUresult cuCtxGetLimit_v3010(size_t *out, CUlimit limit) {
  if ((unsigned)limit >= 3) return UNSUPPORTED_LIMIT;
  *out = limits[limit];
  return 0;
}
static CUresult cuCtxSetLimit_v3010(CUlimit limit, size_t value) {
  if ((unsigned)limit >= 3) return UNSUPPORTED_LIMIT;
  limits[limit] = value;
  return 0;
}
static CUresult cuProfilerStart_v4000(void) { return current ? 0 : INVALID_CONTEXT; }
static CUresult cuProfilerStop_v4000(void) { return current ? 0 : INVALID_CONTEXT; }
static CUresult switch_peer(CUcontext peer, int on) {
  uint64_t device = U(peer) - U(CONTEXT_HANDLE(0));
  CONTEXT;
  if (device >= (uint64_t)devices || (int)device == current - 1) RETURN(INVALID_DEVICE);
  int *access = &peers[current - 1][device];
  if (*access == on) RETURN(on ? PEER_ALREADY : PEER_NOT);
  *access = on;
  RETURN(0);
}
static CUresult cuCtxEnablePeerAccess_v4000(CUcontext peer, unsigned flags) {
  return flags ? INVALID_VALUE : switch_peer(peer, 1);
}
static CUresult cuCtxDisablePeerAccess_v4000(CUcontext peer) { return switch_peer(peer, 0); }

#include "standin_memory.h"
#include "standin_streams.h"

#define FORMS(X) \
  X(cuInit, 2000) X(cuDriverGetVersion, 2020) X(cuDeviceGetCount, 2000) X(cuDeviceGet, 2000) \
  X(cuDeviceGetName, 2000) X(cuDeviceGetUuid, 11040) X(cuDeviceTotalMem, 3020) \
  X(cuDeviceGetAttribute, 2000) X(cuDeviceGetPCIBusId, 4010) X(cuDeviceGetByPCIBusId, 4010) \
  X(cuDeviceCanAccessPeer, 4000) X(cuDevicePrimaryCtxRetain, 7000) \
  X(cuDevicePrimaryCtxRelease, 11000) X(cuCtxGetCurrent, 4000) X(cuCtxSetCurrent, 4000) \
  X(cuCtxGetDevice, 2000) X(cuCtxSynchronize, 2000) X(cuCtxSynchronize, 13000) \
  X(cuCtxGetStreamPriorityRange, 5050) X(cuCtxGetLimit, 3010) X(cuCtxSetLimit, 3010) \
  X(cuProfilerStart, 4000) X(cuProfilerStop, 4000) \
  X(cuCtxEnablePeerAccess, 4000) X(cuCtxDisablePeerAccess, 4000) MEMORY_FORMS(X) STREAM_FORMS(X) CAPTURE_FORMS(X)

#ifdef HEADERS
#define CHECK(name, version) PFN_##name##_v##version check_##name##_v##version = name##_v##version;
FORMS(CHECK)
#endif

CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *found) {
#define FORM(name, version) {#name, version, (void *)name##_v##version},
  static const struct { const char *name; int version; void *function; } forms[] = {FORMS(FORM)};
  int best = 0;
  *out = NULL;
  if (flags != 1) return INVALID_VALUE;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (strcmp(forms[i].name, name) == 0 && forms[i].version <= version && forms[i].version > best) {
      best = forms[i].version;
      *out = forms[i].function;
    }
  }
  *found = *out ? 0 : 1;
  return 0;
}
