/* The inside of standin_libcuda.c: types of cuda.h, handles, memory and streams. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef HEADERS
#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#undef cuGetProcAddress
#else
typedef int CUresult, CUdevice, CUdevice_attribute, CUlimit, CUmem_advise, CUmem_range_attribute;
typedef int CUpointer_attribute, CUstreamCaptureMode, CUstreamCaptureStatus;
typedef int CUdriverProcAddressQueryResult, CUmemAllocationType, CUmemAllocationHandleType;
typedef int CUmemAccess_flags, CUmemPool_attribute;
typedef unsigned long long CUdeviceptr;
typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct { cuuint64_t flags; CUstream stream; CUgraphNode node; int result_out; } CUDA_GRAPH_INSTANTIATE_PARAMS;
typedef struct { char bytes[16]; } CUuuid;
typedef struct { int type; int id; } CUmemLocation;
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
typedef struct {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  int srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  void *srcArray, *reserved0;
  size_t srcPitch, srcHeight, dstXInBytes, dstY, dstZ, dstLOD;
  int dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  void *dstArray, *reserved1;
  size_t dstPitch, dstHeight, WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;
typedef struct { int srcAccessOrder; CUmemLocation srcLocHint, dstLocHint; unsigned flags; } CUmemcpyAttributes;
typedef void (*CUhostFn)(void *);
#endif
#define UNIFIED 4

#define INVALID_VALUE ((CUresult)1)
#define OUT_OF_MEMORY ((CUresult)2)
#define DEINITIALIZED ((CUresult)4)
#define INVALID_DEVICE ((CUresult)101)
#define INVALID_CONTEXT ((CUresult)201)
#define UNSUPPORTED_LIMIT ((CUresult)215)
#define INVALID_HANDLE ((CUresult)400)
#define ILLEGAL_STATE ((CUresult)401)
#define NOT_READY ((CUresult)600)
#define PEER_ALREADY ((CUresult)704)
#define PEER_NOT ((CUresult)705)
#define NOT_SUPPORTED ((CUresult)801)
#define CAPTURE_UNSUPPORTED ((CUresult)900)
#define CAPTURE_IMPLICIT ((CUresult)906)
#define CAPTURE_INVALIDATED ((CUresult)901)
enum { MAX_DEVICES = 8, LEGACY = 1, PER_THREAD = 2, MOST_QUEUED = 1024 };

/* One lock for everything; it is not held while work runs or a host function is called. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static __thread int current; /* the device whose context is current, plus 1 */
static __thread int capture_mode; /* CUstreamCaptureMode of this thread: 0 global, 1 thread local, 2 relaxed */
static int devices = 2, aborts = 1, finished;
static long delay_micros;
static uint64_t capacity = 1ull << 30;
static int misuses, retained[MAX_DEVICES], peers[MAX_DEVICES][MAX_DEVICES];
static long live_streams, live_events, live_host;

#define U(value) ((uint64_t)(uintptr_t)(value))
#define CALL pthread_mutex_lock(&lock)
#define RETURN(status) do { CUresult status_ = (status); pthread_mutex_unlock(&lock); return status_; } while (0)
#define CONTEXT if (finished) return DEINITIALIZED; if (!current) return INVALID_CONTEXT; CALL

/* Handles: never given twice, so that a destroyed one is known for what it is. */
enum kind { STREAM = 1, EVENT, POOL, GRAPH, EXEC, OBJECT };
struct handle { enum kind kind; void *object; };
static struct handle *handles;
static size_t handle_count, handle_room;

static void *new_handle(enum kind kind, void *object) {
  if (handle_count == handle_room) {
    handle_room = handle_room ? 2 * handle_room : 1024;
    handles = realloc(handles, handle_room * sizeof *handles);
  }
  handles[handle_count] = (struct handle){kind, object};
  return (void *)(uintptr_t)(0x5700000000ull + 16 * handle_count++);
}
static struct handle *slot(const void *handle, enum kind kind) {
  uint64_t at = (U(handle) - 0x5700000000ull) / 16;
  return at < handle_count && U(handle) % 16 == 0 && handles[at].kind == kind ? &handles[at] : NULL;
}
/* What is undefined on a GPU ends the process here, or is counted and refused. */
static CUresult misuse(const char *call, const void *handle) {
  misuses++;
  if (aborts) {
    fprintf(stderr, "stand-in: %s: %p is destroyed or no handle\n", call, handle);
    abort();
  }
  return INVALID_HANDLE;
}
static void *object_of(const void *handle, enum kind kind) {
  struct handle *found = slot(handle, kind);
  return found ? found->object : NULL;
}
#define OBJECT_OF(type, name, handle, kind) \
  struct type *name = object_of(handle, kind); if (!name) RETURN(misuse(__func__, handle))

/* Memory: each address is given once; what is freed cannot be read or written any more. */
enum place { ON_DEVICE, ON_HOST, MANAGED };
struct block {
  uint64_t start; size_t bytes, mapped; enum place place; int device, freeing;
  struct pool *pool; struct block *next;
};
struct pool {
  CUmemoryPool handle; int device, freeing; uint64_t threshold, used, used_high, reserved, reserved_high;
  int flags[4], access[MAX_DEVICES];
};
static struct block *blocks;
static uint64_t arena, arena_end, used_bytes[MAX_DEVICES];
static struct pool default_pools[MAX_DEVICES], *current_pools[MAX_DEVICES];
enum { PAGE = 4096 };

static struct block *new_block(size_t bytes, enum place place, int device, struct pool *pool) {
  size_t mapped = (bytes + PAGE - 1) / PAGE * PAGE;
  if (place == ON_DEVICE && used_bytes[device] + bytes > capacity) return NULL;
  uint64_t start = arena;
  if (start + mapped + PAGE > arena_end
      || mmap((void *)start, mapped, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED) return NULL;
  arena += mapped + PAGE; /* a page between two blocks that nobody may touch */
  struct block *made = malloc(sizeof *made);
  *made = (struct block){start, bytes, mapped, place, device, 0, pool, blocks};
  blocks = made;
  if (place == ON_HOST) live_host++; else used_bytes[device] += bytes;
  if (pool) {
    pool->used += bytes;
    if (pool->used > pool->reserved) pool->reserved = pool->used;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
    if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
  }
  return made;
}
static struct block *block_at(uint64_t address) {
  for (struct block *b = blocks; b; b = b->next)
    if (address >= b->start && address - b->start < b->bytes) return b;
  return NULL;
}
static void drop_block(struct block *gone) {
  struct block **link = &blocks;
  while (*link != gone) link = &(*link)->next;
  *link = gone->next;
  mmap((void *)gone->start, gone->mapped, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (gone->place == ON_HOST) live_host--; else used_bytes[gone->device] -= gone->bytes;
  if (gone->pool) {
    gone->pool->used -= gone->bytes;
    uint64_t kept = gone->pool->threshold > gone->pool->used ? gone->pool->threshold : gone->pool->used;
    if (gone->pool->reserved > kept) gone->pool->reserved = kept;
  }
  free(gone);
}
static int is_ours(const void *address) { return block_at(U(address)) != NULL; }

/* Streams: a thread for each runs its work in order, while there is any. */
enum op_kind { MARK, COPY, FILL, HOST, WAIT_VALUE, WRITE_VALUE, FREE };
struct stream;
struct dependency { struct stream *stream; uint64_t seq; };
struct op {
  enum op_kind kind; void *to; const void *from; size_t bytes; uint32_t value; int width;
  CUhostFn function; struct event *event; void *staged;
  uint64_t seq; int waits; struct dependency *after; struct op *next;
};
struct capture { struct stream *origin; int mode, invalid; pthread_t thread; uint64_t id; struct graph *graph; };
struct stream {
  CUstream handle; int device, flags, priority, legacy, dead, running; uint64_t id, queued, done;
  struct op *first, *last; struct capture *capture; pthread_cond_t work; struct stream *next;
};
struct event { struct stream *stream; uint64_t seq; int device, flags, dead; double millis; struct capture *capture; };
struct object { CUuserObject handle; void *data; CUhostFn destroy; unsigned count; };
struct retained { struct object *object; unsigned count; struct retained *next; };
struct graph { CUgraph handle; struct op *first, *last; struct retained *objects; };
static struct stream *streams, *built_in[MAX_DEVICES][3];
static uint64_t ids = 1;

static double now_millis(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void run_op(struct op *op) {
  switch (op->kind) {
    case COPY: memmove(op->to, op->from, op->bytes); break;
    case FILL:
      for (size_t i = 0; i < op->bytes; i++) {
        if (op->width == 1) ((volatile uint8_t *)op->to)[i] = (uint8_t)op->value;
        else if (op->width == 2) ((uint16_t *)op->to)[i] = (uint16_t)op->value;
        else ((uint32_t *)op->to)[i] = op->value;
      }
      break;
    case HOST: op->function(op->to); break;
    case WAIT_VALUE: /* flag 0: at least, as a signed difference */
      while ((int32_t)(*(volatile uint32_t *)op->to - op->value) < 0) usleep(20);
      break;
    case WRITE_VALUE: *(volatile uint32_t *)op->to = op->value; break;
    default: break;
  }
}

/* Work that ended; the lock is held. */
static void end_op(struct stream *stream, struct op *op) {
  if (op->kind == FREE) drop_block(block_at(U(op->to)));
  if (op->event && op->event->stream == stream && op->event->seq == op->seq) op->event->millis = now_millis();
  stream->done = op->seq;
  free(op->staged);
  free(op->after);
  free(op);
  pthread_cond_broadcast(&changed);
}

static void *work(void *argument) {
  struct stream *stream = argument;
  CALL;
  for (;;) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    while (!stream->first && !stream->dead)
      if (pthread_cond_timedwait(&stream->work, &lock, &until)) break;
    struct op *op = stream->first;
    if (!op) break;
    for (int i = 0; i < op->waits; i++)
      while (op->after[i].stream->done < op->after[i].seq) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (delay_micros) usleep(delay_micros);
    run_op(op);
    CALL;
    if (!(stream->first = op->next)) stream->last = NULL;
    end_op(stream, op);
  }
  stream->running = 0;
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void depend(struct op *op, struct stream *on, uint64_t seq) {
  if (on->done >= seq) return;
  op->after = realloc(op->after, (op->waits + 1) * sizeof *op->after);
  op->after[op->waits++] = (struct dependency){on, seq};
}

static void append(struct op **first, struct op **last, struct op *op) {
  if (*last) (*last)->next = op; else *first = op;
  *last = op;
}

/* Queues work, or puts it into the graph being captured. Gives its number. */
static uint64_t queue(struct stream *stream, struct op work_item) {
  struct op *op = malloc(sizeof *op);
  *op = work_item;
  op->next = NULL;
  if (stream->capture) {
    append(&stream->capture->graph->first, &stream->capture->graph->last, op);
    return 0;
  }
  for (struct stream *other = streams; other; other = other->next)
    if (other != stream && other->device == stream->device && !(other->flags & 1) && !(stream->flags & 1)
        && (other->legacy || stream->legacy)) depend(op, other, other->queued);
  op->seq = ++stream->queued;
  append(&stream->first, &stream->last, op);
  if (stream->running) {
    pthread_cond_signal(&stream->work);
  } else {
    pthread_t thread;
    stream->running = pthread_create(&thread, NULL, work, stream) == 0;
    pthread_detach(thread);
  }
  return op->seq;
}

static void await(struct stream *stream, uint64_t seq) {
  while (stream->done < seq) pthread_cond_wait(&changed, &lock);
}
/* Who queues faster than a stream works waits, as on a GPU, whose queues have an end. */
static void await_room(struct stream *stream) {
  while (!stream->capture && stream->queued - stream->done >= MOST_QUEUED) pthread_cond_wait(&changed, &lock);
}
static void await_device(int device) {
  for (struct stream *stream = streams; stream; stream = stream->next)
    if (stream->device == device) await(stream, stream->queued);
}

static struct stream *new_stream(int device, int flags, int priority, int legacy) {
  struct stream *made = calloc(1, sizeof *made);
  made->device = device;
  made->flags = flags;
  made->priority = priority;
  made->legacy = legacy;
  made->id = ids++;
  pthread_cond_init(&made->work, NULL);
  made->next = streams;
  return streams = made;
}
/* A stream by its handle; 0 and 1 are the legacy stream, 2 here is one for each device. */
static struct stream *stream_of(CUstream handle) {
  uint64_t number = U(handle);
  if (number > PER_THREAD) return object_of(handle, STREAM);
  if (!current) return NULL;
  struct stream **place = &built_in[current - 1][number == PER_THREAD ? PER_THREAD : LEGACY];
  if (!*place) *place = new_stream(current - 1, 0, 0, number != PER_THREAD);
  return *place;
}
#define STREAM_OF(name, handle) \
  if (finished) return DEINITIALIZED; \
  CALL; struct stream *name = stream_of(handle); \
  if (!name) RETURN(U(handle) <= PER_THREAD ? INVALID_CONTEXT : misuse(__func__, handle))
