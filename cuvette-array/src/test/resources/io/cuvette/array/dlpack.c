// A producer and a consumer of DLPack tensors. The structures are written down from the specification, 1.1.
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint32_t major, minor; } Version;
typedef struct { int32_t type, id; } Device;
typedef struct { uint8_t code, bits; uint16_t lanes; } Type;
typedef struct {
  void *data;
  Device device;
  int32_t ndim;
  Type dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} Tensor;
typedef struct Old { Tensor tensor; void *context; void (*deleter)(struct Old *); } Old;
typedef struct New {
  Version version;
  void *context;
  void (*deleter)(struct New *);
  uint64_t flags;
  Tensor tensor;
} New;

static int deleted;

int deletions(void) { return __atomic_load_n(&deleted, __ATOMIC_SEQ_CST); }

static void end_new(New *tensor) {
  __atomic_add_fetch(&deleted, 1, __ATOMIC_SEQ_CST);
  free(tensor->context);
  free(tensor);
}

static void end_old(Old *tensor) {
  __atomic_add_fetch(&deleted, 1, __ATOMIC_SEQ_CST);
  free(tensor->context);
  free(tensor);
}

static int64_t shape[2], strides[2];

static void fill(Tensor *tensor, void *data) {
  tensor->data = data;
  tensor->device = (Device){1, 0};
  tensor->ndim = 2;
  tensor->dtype = (Type){2, 32, 1};
  shape[0] = 2, shape[1] = 3;
  strides[0] = 4, strides[1] = 1;
  tensor->shape = shape;
  tensor->strides = strides;
  tensor->byte_offset = 4;
}

// Two rows of three floats, four apart, after one that is skipped: 1 2 3 and 5 6 7.
New *produce(uint64_t flags) {
  New *made = calloc(1, sizeof(New));
  float *data = malloc(9 * sizeof(float));
  for (int i = 0; i < 9; i++) data[i] = (float)i;
  *made = (New){{1, 0}, data, end_new, flags, {0}};
  fill(&made->tensor, data);
  return made;
}

Old *produce_old(void) {
  Old *made = calloc(1, sizeof(Old));
  float *data = malloc(9 * sizeof(float));
  for (int i = 0; i < 9; i++) data[i] = (float)i;
  fill(&made->tensor, data);
  made->tensor.strides = NULL;
  made->context = data;
  made->deleter = end_old;
  return made;
}

// Changes one thing: what an array cannot be.
void spoil(New *t, int what, int64_t value) {
  switch (what) {
    case 0: t->version.major = (uint32_t)value; break;
    case 1: t->tensor.device.type = (int32_t)value; break;
    case 2: t->tensor.device.id = (int32_t)value; break;
    case 3: t->tensor.ndim = (int32_t)value; break;
    case 4: t->tensor.dtype.code = (uint8_t)value; break;
    case 5: t->tensor.dtype.bits = (uint8_t)value; break;
    case 6: t->tensor.dtype.lanes = (uint16_t)value; break;
    case 7: shape[0] = value; break;
    case 8: strides[1] = value; break;
    case 9: t->tensor.byte_offset = (uint64_t)value; break;
    case 10: t->tensor.data = (void *)value; break;
    case 11: t->tensor.shape = (int64_t *)value; break;
  }
}

// What a consumer of floats reads: the sum, with the index as weight. NaN if it is not what it takes.
static double sum(Tensor *t) {
  double all = 0;
  if (t->dtype.code != 2 || t->dtype.bits != 32 || t->dtype.lanes != 1 || t->ndim != 2) return -1;
  for (int64_t i = 0; i < t->shape[0]; i++)
    for (int64_t k = 0; k < t->shape[1]; k++)
      all += (double)(i * t->shape[1] + k + 1)
          * ((float *)((char *)t->data + t->byte_offset))[i * t->strides[0] + k * t->strides[1]];
  return all;
}

double read_new(New *t) { return t->version.major == 1 ? sum(&t->tensor) : -1; }
double read_old(Old *t) { return sum(&t->tensor); }
int64_t number_of(New *t, int what) {
  switch (what) {
    case 0: return (int64_t)t->flags;
    case 1: return t->tensor.device.type;
    case 2: return t->tensor.device.id;
    default: return (int64_t)t->tensor.data;
  }
}

static void *on_thread(void *t) {
  ((New *)t)->deleter(t);
  ((New *)t)->deleter(t);
  return NULL;
}

// Calls the deleter twice on a thread that the JVM does not know.
void delete_elsewhere(New *t) {
  pthread_t thread;
  pthread_create(&thread, NULL, on_thread, t);
  pthread_join(thread, NULL);
}

int layout(int what) {
  int all[] = {sizeof(New), sizeof(Old), offsetof(New, deleter), offsetof(New, flags),
    offsetof(New, tensor), offsetof(Old, deleter), offsetof(Tensor, dtype), offsetof(Tensor, byte_offset)};
  return all[what];
}
