// A producer and a consumer of Arrow device arrays. The structures are written down from the specification of the
// C data interface and of the C device data interface.
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};
struct ArrowDeviceArray {
  struct ArrowArray array;
  int64_t device_id;
  int32_t device_type;
  void *sync_event;
  int64_t reserved[3];
};

int64_t layout(int32_t what) {
  int64_t all[] = {sizeof(struct ArrowArray), sizeof(struct ArrowDeviceArray), offsetof(struct ArrowArray, buffers),
    offsetof(struct ArrowArray, release), offsetof(struct ArrowArray, private_data),
    offsetof(struct ArrowDeviceArray, device_id), offsetof(struct ArrowDeviceArray, device_type),
    offsetof(struct ArrowDeviceArray, sync_event)};
  return all[what];
}

static int64_t released;
static int64_t late; // releases of what was released

int64_t releases(void) { return __atomic_load_n(&released, __ATOMIC_SEQ_CST); }
int64_t late_releases(void) { return __atomic_load_n(&late, __ATOMIC_SEQ_CST); }

// Ends an array and its children that were not moved. The structure itself may be a copy.
static void end(struct ArrowArray *array) {
  if (!array->release) {
    __atomic_add_fetch(&late, 1, __ATOMIC_SEQ_CST);
    return;
  }
  for (int64_t i = 0; i < array->n_children && array->children; i++) {
    struct ArrowArray *child = array->children[i];
    if (child && child->release) child->release(child);
  }
  array->release = NULL;
  __atomic_add_fetch(&released, 1, __ATOMIC_SEQ_CST);
}

static void fill(struct ArrowArray *array, int64_t length, int64_t offset, void *validity, void *data) {
  const void **buffers = calloc(3, sizeof(void *));
  buffers[0] = validity, buffers[1] = data;
  *array = (struct ArrowArray){length, validity ? -1 : 0, offset, data ? 2 : 1, 0, buffers, NULL, NULL, end, NULL};
}

// A column of values.
struct ArrowDeviceArray *produce(int64_t length, int64_t offset, void *validity, void *data) {
  struct ArrowDeviceArray *made = calloc(1, sizeof *made);
  fill(&made->array, length, offset, validity, data);
  made->device_type = 2;
  return made;
}

// A column of lists, or a struct, over values.
struct ArrowDeviceArray *produce_nested(int64_t length, int64_t children, int64_t of_child, void *data) {
  struct ArrowDeviceArray *made = calloc(1, sizeof *made);
  fill(&made->array, length, 0, NULL, NULL);
  made->array.n_children = children;
  made->array.children = calloc(children, sizeof(void *));
  for (int64_t i = 0; i < children; i++) {
    made->array.children[i] = calloc(1, sizeof(struct ArrowArray));
    fill(made->array.children[i], of_child, 0, NULL, data);
  }
  made->device_type = 2;
  return made;
}

// Changes one thing of an array, or of a child of it.
void spoil(struct ArrowDeviceArray *device, int64_t child, int32_t what, int64_t value) {
  struct ArrowArray *array = child < 0 ? &device->array : device->array.children[child];
  switch (what) {
    case 0: array->length = value; break;
    case 1: array->null_count = value; break;
    case 2: array->offset = value; break;
    case 3: array->n_buffers = value; break;
    case 4: array->n_children = value; break;
    case 5: array->buffers = (const void **)value; break;
    case 6: array->children = (struct ArrowArray **)value; break;
    case 7: array->dictionary = (struct ArrowArray *)value; break;
    case 8: array->release = (void (*)(struct ArrowArray *))value; break;
    case 9: array->buffers[0] = (const void *)value; break;
    case 10: array->buffers[1] = (const void *)value; break;
    case 11: array->children[0] = (struct ArrowArray *)value; break;
    case 12: device->device_id = value; break;
    case 13: device->device_type = (int32_t)value; break;
    case 14: device->sync_event = (void *)value; break;
  }
}

int64_t number_of(struct ArrowDeviceArray *device, int64_t child, int32_t what) {
  struct ArrowArray *array = child < 0 ? &device->array : device->array.children[child];
  switch (what) {
    case 0: return array->length;
    case 1: return array->null_count;
    case 2: return array->offset;
    case 3: return array->n_buffers;
    case 4: return array->n_children;
    case 8: return (int64_t)array->release;
    case 9: return (int64_t)array->buffers[0];
    case 10: return (int64_t)array->buffers[1];
    case 12: return device->device_id;
    case 13: return device->device_type;
    case 14: return device->sync_event ? *(int64_t *)device->sync_event : 0;
    default: return device->reserved[0] | device->reserved[1] | device->reserved[2];
  }
}

// Moves an array, or a child, to memory of its own, as the specification has it.
struct ArrowArray *move(struct ArrowDeviceArray *device, int64_t child) {
  struct ArrowArray *array = child < 0 ? &device->array : device->array.children[child];
  struct ArrowArray *moved = calloc(1, sizeof *moved);
  *moved = *array;
  array->release = NULL;
  return moved;
}

int64_t first_buffer(struct ArrowArray *array) { return (int64_t)array->buffers[array->n_buffers - 1]; }

static void *on_thread(void *argument) {
  struct ArrowArray *array = argument;
  struct ArrowArray copy = *array;
  array->release(array);
  if (!array->release) copy.release(&copy); // once too often
  return NULL;
}

// Releases twice on a thread that the JVM does not know; tells whether the array says that it is released.
int64_t release_elsewhere(struct ArrowArray *array) {
  pthread_t thread;
  pthread_create(&thread, NULL, on_thread, array);
  pthread_join(thread, NULL);
  return array->release == NULL;
}
