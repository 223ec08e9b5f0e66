// A tool that notes the calls of NVTX in the file that STUB_NVTX_LOG names, or LOG where that is
// defined. With HEADERS its types are held to those of the headers of NVTX. With INTEROP it is the
// interop library too, and with SILENT that one without a tool.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t payloadType, reserved0;
  union { int64_t number; double real; } payload;
  int32_t messageType;
  union { const char *text; void *registered; } message;
} event_t;

typedef struct { uint16_t version, size; uint32_t kind; void *heap; size_t count, step; const void *elements; void *out; } regions_t;
typedef struct { uint16_t version, size; uint32_t kind; size_t count, step; void *const *elements; } unregions_t;
typedef struct { size_t bytes; const void *address; } range_t;
typedef struct {
  uint16_t version, size;
  uint32_t reserved0, usage, type;
  size_t rangeSize;
  const range_t *range;
  uint32_t category, messageType;
  const char *message;
} heap_t;
typedef struct { size_t id, slots; intptr_t *functions; } segment_t;
typedef struct { uint16_t version, size, module, compat; size_t count; segment_t *segments; void *get; const void *info; } module_t;

#ifdef HEADERS
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>
#define SAME(type, field, other, its) \
  _Static_assert(__builtin_offsetof(type, field) == __builtin_offsetof(other, its), #field)
#define SIZE(type, other) _Static_assert(sizeof(type) == sizeof(other), #other)
SIZE(event_t, nvtxEventAttributes_t);
SAME(event_t, color, nvtxEventAttributes_t, color);
SAME(event_t, payload, nvtxEventAttributes_t, payload);
SAME(event_t, message, nvtxEventAttributes_t, message);
SIZE(heap_t, nvtxMemHeapDesc_t);
SAME(heap_t, range, nvtxMemHeapDesc_t, typeSpecificDesc);
SAME(heap_t, message, nvtxMemHeapDesc_t, message);
SIZE(range_t, nvtxMemVirtualRangeDesc_t);
SAME(range_t, address, nvtxMemVirtualRangeDesc_t, ptr);
SIZE(regions_t, nvtxMemRegionsRegisterBatch_t);
SAME(regions_t, elements, nvtxMemRegionsRegisterBatch_t, regionDescElements);
SIZE(unregions_t, nvtxMemRegionsUnregisterBatch_t);
SAME(unregions_t, elements, nvtxMemRegionsUnregisterBatch_t, refElements);
_Static_assert(NVTX_EXT_COMPATID_MEM == 0x0102, "version");
#endif

#ifdef LOG
#define LOG_FILE LOG
#else
#define LOG_FILE getenv("STUB_NVTX_LOG")
#endif
static void note(const char *format, const char *text, long long a, long long b, long long c) {
  FILE *log = fopen(LOG_FILE, "a");
  fprintf(log, format, text, a, b, c);
  fclose(log);
}

static void noteEvent(const char *call, intptr_t domain, const event_t *e) {
  char text[4096];
  const char *message = e->messageType == 3 ? (const char *)e->message.registered : e->message.text;
  char color[32] = "", payload[64] = "";
  if (e->colorType == 1) snprintf(color, sizeof color, " color %08X", e->color);
  if (e->payloadType == 2) snprintf(payload, sizeof payload, " payload %lld", (long long)e->payload.number);
  if (e->payloadType == 3) snprintf(payload, sizeof payload, " payload %g", e->payload.real);
  snprintf(text, sizeof text, "%s %ld %s%s category %u%s%s v%d/%d", call, (long)domain,
           e->messageType == 3 ? "registered " : "", message, e->category, color, payload,
           e->version, e->size);
  note("%s\n", text, 0, 0, 0);
}

static long ranges;
static long domains;
static void mark(intptr_t d, const event_t *e) { noteEvent("mark", d, e); }
static uint64_t start(intptr_t d, const event_t *e) { noteEvent("start", d, e); return ++ranges; }
static void end(intptr_t d, uint64_t range) { note("%send %lld %lld\n", "", d, range, 0); }
static int push(intptr_t d, const event_t *e) { noteEvent("push", d, e); return 0; }
static int pop(intptr_t d) { note("%spop %lld\n", "", d, 0, 0); return 0; }
static void category(intptr_t d, uint32_t c, const char *name) { note("category %s %lld %lld\n", name, d, c, 0); }
static void *string(intptr_t d, const char *s) { note("register %s %lld\n", s, d, 0, 0); return strdup(s); }
static void *domain(const char *name) { note("domain %s\n", name, 0, 0, 0); return (void *)++domains; }
static void device(int number, const char *name) { note("device %s %lld\n", name, number, 0, 0); }
static void stream(void *handle, const char *name) { note("stream %s %lld\n", name, (intptr_t)handle, 0, 0); }

static void *heap(intptr_t d, const heap_t *h) {
  note("%sin %lld ", "", d, 0, 0);
  note("heap %s %lld+%lld", h->message, (intptr_t)h->range->address, h->range->bytes, 0);
  note("%s usage %lld type %lld v%llx", "", h->usage, h->type, h->version);
  note("%s/%lld range %lld text %lld\n", "", h->size, h->rangeSize, h->messageType);
  return (void *)0x77;
}
static void heapEnd(intptr_t d, void *h) { note("%sin %lld heap end %lld\n", "", d, (intptr_t)h, 0); }
static void regions(intptr_t d, const regions_t *r) {
  const range_t *range = r->elements;
  note("%sin %lld ", "", d, 0, 0);
  note("%sregion of %lld: %lld+%lld", "", (intptr_t)r->heap, (intptr_t)range->address, range->bytes);
  note("%s count %lld step %lld type %lld", "", r->count, r->step, r->kind);
  note("%s v%llx/%lld out %lld\n", "", r->version, r->size, r->out != NULL);
  for (size_t i = 0; r->out && i < r->count; i++) ((const void **)r->out)[i] = range[i].address; // handles
}
static void regionsEnd(intptr_t d, const unregions_t *r) {
  note("%sin %lld ", "", d, 0, 0);
  note("%sregion end %lld count %lld step %lld", "", r->elements ? (intptr_t)r->elements[0] : -1, r->count, r->step);
  note("%s kind %lld v%llx/%lld\n", "", r->kind, r->version, r->size);
}

typedef void *(*export_t)(uint32_t);
typedef struct { size_t size; int (*table)(int, void ****, unsigned *); } callbacks_t;
typedef struct { size_t size; uint32_t version, reserved; void (*set)(uint32_t); } version_t;

int InitializeInjectionNvtx2(export_t get) {
  static int attached;
  #ifdef REFUSES
  return 0;
#endif
  if (getenv("STUB_NVTX_REFUSES") || attached++) return 0;
  if (get(0) || get(2) || get(9)) return 0;
  callbacks_t *calls = get(1);
  version_t *version = get(3);
  void ***core2, ***cuda;
  unsigned size = 0;
  if (calls->size != sizeof *calls || version->size != sizeof *version || version->version != 3) return 0;
  version->set(2);
  if (!calls->table || calls->table(0, &core2, &size) || calls->table(-1, &core2, &size)) return 0;
  if (!calls->table(1, NULL, NULL) || !calls->table(1, NULL, &size) || size != 16) return 0;
  size = 0;
  if (!calls->table(5, &core2, &size) || size != 16) return 0;
  for (int i = 0; i <= 16; i++) if (!core2[i] != (i == 0 || i == 16)) return 0;
  *core2[1] = mark;
  *core2[2] = start;
  *core2[3] = end;
  *core2[4] = push;
  *core2[5] = pop;
  *core2[8] = category;
  *core2[10] = string;
  *core2[12] = domain;
  if (!calls->table(6, &cuda, &size) || size != 7) return 0;
  if (!calls->table(2, &cuda, &size) || size != 9) return 0;
  *cuda[1] = device;
  *cuda[5] = stream;
  return !calls->table(7, &cuda, &size);
}

int InitializeInjectionNvtxExtension(module_t *module) {
  if (module->module != 1) return 1;
  if (module->version != 3 || module->size != sizeof *module) return 0;
  if (module->compat != 0x0102 || module->count != 1 || module->segments->slots < 17 || module->segments->id != 1) return 0;
  intptr_t *slots = module->segments->functions;
  slots[0] = (intptr_t)heap;
  slots[1] = (intptr_t)heapEnd;
  slots[3] = (intptr_t)regions;
  slots[5] = (intptr_t)regionsEnd;
  return 1;
}

#ifdef INTEROP
#ifdef SILENT
void *nvtxDomainCreateA(const char *name) { return 0; }
void *nvtxMemHeapRegister(intptr_t d, const heap_t *h) { return (void *)-1; }
#else
void *nvtxDomainCreateA(const char *name) { return domain(name); }
void *nvtxMemHeapRegister(intptr_t d, const heap_t *h) { return heap(d, h); }
#endif
void nvtxDomainMarkEx(intptr_t d, const event_t *e) { mark(d, e); }
uint64_t nvtxDomainRangeStartEx(intptr_t d, const event_t *e) { return start(d, e); }
void nvtxDomainRangeEnd(intptr_t d, uint64_t range) { end(d, range); }
int nvtxDomainRangePushEx(intptr_t d, const event_t *e) { return push(d, e); }
int nvtxDomainRangePop(intptr_t d) { return pop(d); }
void nvtxDomainNameCategoryA(intptr_t d, uint32_t c, const char *name) { category(d, c, name); }
void *nvtxDomainRegisterStringA(intptr_t d, const char *s) { return string(d, s); }
void nvtxNameCuDeviceA(int number, const char *name) { device(number, name); }
void nvtxNameCuStreamA(void *handle, const char *name) { stream(handle, name); }
void nvtxMemHeapUnregister(intptr_t d, void *h) { heapEnd(d, h); }
void nvtxMemRegionsRegister(intptr_t d, const regions_t *r) { regions(d, r); }
void nvtxMemRegionsUnregister(intptr_t d, const unregions_t *r) { regionsEnd(d, r); }
#endif
