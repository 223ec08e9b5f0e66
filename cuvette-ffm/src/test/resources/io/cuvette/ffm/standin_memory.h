/* Part of standin_libcuda.c: memory, pools and what they are asked. */

static CUresult allocate(CUdeviceptr *out, size_t bytes, enum place place) {
  CONTEXT;
  if (disturbs(0)) RETURN(CAPTURE_UNSUPPORTED);
  if (!bytes) RETURN(INVALID_VALUE);
  struct block *made = new_block(bytes, place, current - 1, NULL);
  *out = made ? made->start : 0;
  RETURN(made ? 0 : OUT_OF_MEMORY);
}
/* Waits for the device first, as a GPU's driver does. */
static CUresult release(uint64_t address, int host) {
  CONTEXT;
  struct block *block = block_at(address);
  if (!block || block->start != address || (block->place == ON_HOST) != host || block->freeing)
    RETURN(INVALID_VALUE);
  if (disturbs(0)) RETURN(CAPTURE_UNSUPPORTED);
  block->freeing = 1;
  await_device(block->device);
  drop_block(block);
  RETURN(0);
}
static CUresult cuMemAlloc_v3020(CUdeviceptr *out, size_t bytes) { return allocate(out, bytes, ON_DEVICE); }
static CUresult cuMemFree_v3020(CUdeviceptr address) { return address ? release(address, 0) : 0; }
static CUresult cuMemHostAlloc_v2020(void **out, size_t bytes, unsigned flags) {
  CUdeviceptr address = 0;
  *out = NULL;
  if (flags > 7) return INVALID_VALUE;
  CUresult status = allocate(&address, bytes, ON_HOST);
  *out = (void *)(uintptr_t)address;
  return status;
}
static CUresult cuMemFreeHost_v2000(void *address) { return release(U(address), 1); }
static CUresult cuMemAllocManaged_v6000(CUdeviceptr *out, size_t bytes, unsigned flags) {
  return flags == 1 || flags == 2 ? allocate(out, bytes, MANAGED) : INVALID_VALUE;
}
static CUresult cuMemGetInfo_v3020(size_t *free_bytes, size_t *total) {
  CONTEXT;
  *free_bytes = capacity > used_bytes[current - 1] ? capacity - used_bytes[current - 1] : 0;
  *total = capacity;
  RETURN(0);
}
static CUresult cuPointerGetAttribute_v4000(void *out, CUpointer_attribute attribute, CUdeviceptr address) {
  CALL;
  struct block *block = block_at(address);
  if (!block) RETURN(INVALID_VALUE);
  uint64_t *wide = out;
  switch ((int)attribute) {
    case 2: *(unsigned *)out = block->place == ON_HOST ? 1 : 2; break;
    case 8: *(unsigned *)out = block->place == MANAGED; break;
    case 9: *(int *)out = block->device; break;
    case 10: *(unsigned *)out = 0; break;
    case 11: *wide = block->start; break;
    case 12: *wide = block->bytes; break;
    case 17: *wide = block->pool ? U(block->pool->handle) : 0; break;
    default: RETURN(INVALID_VALUE);
  }
  RETURN(0);
}
static CUresult cuMemRangeGetAttribute_v8000(void *out, size_t size, CUmem_range_attribute attribute,
                                             CUdeviceptr address, size_t bytes) {
  (void)attribute, (void)bytes;
  CALL;
  struct block *block = block_at(address);
  if (!block || block->place != MANAGED) RETURN(INVALID_VALUE);
  memset(out, attribute == 1 ? 0 : 0xfe, size); /* not read-mostly; -2 for no place is near enough */
  RETURN(0);
}
static CUresult cuMemPrefetchAsync_v12020(CUdeviceptr address, size_t bytes, CUmemLocation place, unsigned flags,
                                          CUstream handle) {
  (void)bytes, (void)place, (void)flags;
  STREAM_OF(stream, handle);
  struct block *block = block_at(address);
  if (!block || block->place != MANAGED) RETURN(INVALID_VALUE);
  queue(stream, (struct op){.kind = MARK});
  RETURN(0);
}
static CUresult cuMemAdvise_v12020(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation place) {
  (void)bytes, (void)advice, (void)place;
  CALL;
  struct block *block = block_at(address);
  RETURN(block && block->place == MANAGED ? 0 : INVALID_VALUE);
}

/* pools */
static CUresult cuDeviceGetDefaultMemPool_v11020(CUmemoryPool *out, CUdevice device) {
  if (!exists(device)) return INVALID_DEVICE;
  *out = default_pools[device].handle;
  return 0;
}
static CUresult cuDeviceGetMemPool_v11020(CUmemoryPool *out, CUdevice device) {
  if (!exists(device)) return INVALID_DEVICE;
  CALL;
  *out = current_pools[device]->handle;
  RETURN(0);
}
static CUresult cuDeviceSetMemPool_v11020(CUdevice device, CUmemoryPool handle) {
  if (!exists(device)) return INVALID_DEVICE;
  CALL;
  OBJECT_OF(pool, pool, handle, POOL);
  current_pools[device] = pool;
  RETURN(0);
}
static CUresult cuMemPoolCreate_v11020(CUmemoryPool *out, const CUmemPoolProps *properties) {
  if (properties->handleTypes) return NOT_SUPPORTED;
  if ((int)properties->location.type != 1) return NOT_SUPPORTED;
  if (!exists(properties->location.id)) return INVALID_DEVICE;
  CALL;
  struct pool *made = calloc(1, sizeof *made);
  *made = (struct pool){.device = properties->location.id, .flags = {0, 1, 1, 1}};
  made->access[made->device] = 3;
  *out = made->handle = new_handle(POOL, made);
  RETURN(0);
}
/* Its memory stays until it is freed. */
static CUresult cuMemPoolDestroy_v11020(CUmemoryPool handle) {
  CALL;
  OBJECT_OF(pool, pool, handle, POOL);
  if (pool == &default_pools[pool->device]) RETURN(INVALID_VALUE);
  if (current_pools[pool->device] == pool) current_pools[pool->device] = &default_pools[pool->device];
  slot(handle, POOL)->object = NULL;
  RETURN(0);
}
static CUresult cuMemPoolTrimTo_v11020(CUmemoryPool handle, size_t bytes) {
  CALL;
  OBJECT_OF(pool, pool, handle, POOL);
  if (disturbs(0)) RETURN(CAPTURE_UNSUPPORTED);
  uint64_t kept = bytes > pool->used ? bytes : pool->used;
  if (pool->reserved > kept) pool->reserved = kept;
  RETURN(0);
}
static CUresult cuMemPoolGetAttribute_v11020(CUmemoryPool handle, CUmemPool_attribute attribute, void *out) {
  CALL;
  OBJECT_OF(pool, pool, handle, POOL);
  uint64_t wide[] = {pool->threshold, pool->reserved, pool->reserved_high, pool->used, pool->used_high};
  if ((int)attribute < 1 || (int)attribute > 8) RETURN(INVALID_VALUE);
  if ((int)attribute <= 3) *(int *)out = pool->flags[attribute]; else *(uint64_t *)out = wide[attribute - 4];
  RETURN(0);
}
static CUresult cuMemPoolSetAttribute_v11020(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
  CALL;
  OBJECT_OF(pool, pool, handle, POOL);
  switch ((int)attribute) {
    case 1: case 2: case 3: pool->flags[attribute] = *(int *)value; break;
    case 4: pool->threshold = *(uint64_t *)value; break;
    case 6: pool->reserved_high = pool->reserved; break;
    case 8: pool->used_high = pool->used; break;
    default: RETURN(INVALID_VALUE);
  }
  RETURN(0);
}
static CUresult cuMemPoolGetAccess_v11020(CUmemAccess_flags *out, CUmemoryPool handle, CUmemLocation *place) {
  CALL;
  OBJECT_OF(pool, pool, handle, POOL);
  if ((int)place->type != 1 || !exists(place->id)) RETURN(INVALID_VALUE);
  *out = (CUmemAccess_flags)pool->access[place->id];
  RETURN(0);
}
static CUresult cuMemPoolSetAccess_v11020(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count) {
  CALL;
  OBJECT_OF(pool, pool, handle, POOL);
  for (size_t i = 0; i < count; i++) {
    if ((int)map[i].location.type != 1 || !exists(map[i].location.id)) RETURN(INVALID_VALUE);
    pool->access[map[i].location.id] = (int)map[i].flags;
  }
  RETURN(0);
}
static CUresult from_pool(CUdeviceptr *out, size_t bytes, struct pool *pool) {
  if (!bytes) return INVALID_VALUE;
  struct block *made = new_block(bytes, ON_DEVICE, pool->device, pool);
  *out = made ? made->start : 0;
  return made ? 0 : OUT_OF_MEMORY;
}
static CUresult cuMemAllocAsync_v11020(CUdeviceptr *out, size_t bytes, CUstream handle) {
  STREAM_OF(stream, handle);
  if (stream->capture) RETURN(NOT_SUPPORTED);
  if (disturbs(0)) RETURN(CAPTURE_UNSUPPORTED);
  RETURN(from_pool(out, bytes, current_pools[stream->device]));
}
static CUresult cuMemAllocFromPoolAsync_v11020(CUdeviceptr *out, size_t bytes, CUmemoryPool of, CUstream handle) {
  STREAM_OF(stream, handle);
  OBJECT_OF(pool, pool, of, POOL);
  if (stream->capture) RETURN(NOT_SUPPORTED);
  if (disturbs(0)) RETURN(CAPTURE_UNSUPPORTED);
  RETURN(from_pool(out, bytes, pool));
}
static CUresult cuMemFreeAsync_v11020(CUdeviceptr address, CUstream handle) {
  STREAM_OF(stream, handle);
  struct block *block = block_at(address);
  if (!block || block->start != address || block->place == ON_HOST || block->freeing) RETURN(INVALID_VALUE);
  if (stream->capture) RETURN(NOT_SUPPORTED);
  block->freeing = 1;
  queue(stream, (struct op){.kind = FREE, .to = (void *)(uintptr_t)address});
  RETURN(0);
}

#define MEMORY_FORMS(X) \
  X(cuMemAlloc, 3020) X(cuMemFree, 3020) X(cuMemHostAlloc, 2020) X(cuMemFreeHost, 2000) \
  X(cuMemAllocManaged, 6000) X(cuMemGetInfo, 3020) X(cuPointerGetAttribute, 4000) \
  X(cuMemRangeGetAttribute, 8000) X(cuMemPrefetchAsync, 12020) X(cuMemAdvise, 12020) \
  X(cuDeviceGetDefaultMemPool, 11020) X(cuDeviceGetMemPool, 11020) X(cuDeviceSetMemPool, 11020) \
  X(cuMemPoolCreate, 11020) X(cuMemPoolDestroy, 11020) X(cuMemPoolTrimTo, 11020) \
  X(cuMemPoolGetAttribute, 11020) X(cuMemPoolSetAttribute, 11020) X(cuMemPoolGetAccess, 11020) \
  X(cuMemPoolSetAccess, 11020) X(cuMemAllocAsync, 11020) X(cuMemAllocFromPoolAsync, 11020) X(cuMemFreeAsync, 11020)
