/* Part of stub_libcuda.c: memory pools and stream-ordered memory. */

static CUresult cuDeviceGetDefaultMemPool_v11020(CUmemoryPool *out, CUdevice device) {
  NOTE("cuDeviceGetDefaultMemPool@11020(%d)", device);
  *out = (CUmemoryPool)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuDeviceGetMemPool_v11020(CUmemoryPool *out, CUdevice device) {
  NOTE("cuDeviceGetMemPool@11020(%d)", device);
  *out = (CUmemoryPool)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuDeviceSetMemPool_v11020(CUdevice device, CUmemoryPool pool) {
  NOTE("cuDeviceSetMemPool@11020(%d, %llx)", device, U(pool));
  return 0;
}
static CUresult cuMemGetDefaultMemPool_v13000(CUmemoryPool *out, CUmemLocation *place,
      CUmemAllocationType type) {
  NOTE("cuMemGetDefaultMemPool@13000({%d, %d}, %d)", (int)place->type, place->id, (int)type);
  *out = (CUmemoryPool)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuMemGetMemPool_v13000(CUmemoryPool *out, CUmemLocation *place,
      CUmemAllocationType type) {
  NOTE("cuMemGetMemPool@13000({%d, %d}, %d)", (int)place->type, place->id, (int)type);
  *out = (CUmemoryPool)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuMemSetMemPool_v13000(CUmemLocation *place, CUmemAllocationType type,
      CUmemoryPool pool) {
  NOTE("cuMemSetMemPool@13000({%d, %d}, %d, %llx)", (int)place->type, place->id, (int)type, U(pool));
  return 0;
}

/* What must be zero is summed up. */
static CUresult cuMemPoolCreate_v11020(CUmemoryPool *out, const CUmemPoolProps *pool) {
  int rest = pool->usage + (pool->win32SecurityAttributes != NULL);
  for (size_t i = 0; i < sizeof pool->reserved; i++) rest += pool->reserved[i];
  NOTE("cuMemPoolCreate@11020({%d, %d, {%d, %d}, %zu, %d})", (int)pool->allocType,
       (int)pool->handleTypes, (int)pool->location.type, pool->location.id, pool->maxSize, rest);
  *out = (CUmemoryPool)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuMemPoolDestroy_v11020(CUmemoryPool pool) {
  NOTE("cuMemPoolDestroy@11020(%llx)", U(pool));
  return 0;
}
static CUresult cuMemPoolTrimTo_v11020(CUmemoryPool pool, size_t bytes) {
  NOTE("cuMemPoolTrimTo@11020(%llx, %zu)", U(pool), bytes);
  return 0;
}

/* The first three attributes are ints, the others 64-bit. */
static CUresult cuMemPoolGetAttribute_v11020(CUmemoryPool pool, CUmemPool_attribute attribute,
      void *out) {
  NOTE("cuMemPoolGetAttribute@11020(%llx, %d)", U(pool), (int)attribute);
  memcpy(out, answers, attribute <= 3 ? sizeof(int) : sizeof(uint64_t));
  return 0;
}
static CUresult cuMemPoolSetAttribute_v11020(CUmemoryPool pool, CUmemPool_attribute attribute,
      void *value) {
  if (attribute <= 3)
    NOTE("cuMemPoolSetAttribute@11020(%llx, %d, int %d)", U(pool), (int)attribute, *(int *)value);
  else
    NOTE("cuMemPoolSetAttribute@11020(%llx, %d, %llu)", U(pool), (int)attribute,
         *(unsigned long long *)value);
  return 0;
}
static CUresult cuMemPoolGetAccess_v11020(CUmemAccess_flags *out, CUmemoryPool pool,
      CUmemLocation *place) {
  NOTE("cuMemPoolGetAccess@11020(%llx, {%d, %d})", U(pool), (int)place->type, place->id);
  *out = (CUmemAccess_flags)answers[0];
  return 0;
}
static CUresult cuMemPoolSetAccess_v11020(CUmemoryPool pool, const CUmemAccessDesc *map,
      size_t count) {
  char text[256] = "";
  for (size_t i = 0; i < count; i++) {
    snprintf(text + strlen(text), sizeof text - strlen(text), " {{%d, %d}, %d}",
             (int)map[i].location.type, map[i].location.id, (int)map[i].flags);
  }
  NOTE("cuMemPoolSetAccess@11020(%llx,%s, %zu)", U(pool), text, count);
  return 0;
}
static CUresult cuMemAllocAsync_v11020(CUdeviceptr *out, size_t bytes, CUstream stream) {
  NOTE("cuMemAllocAsync@11020(%zu, %llx)", bytes, U(stream));
  *out = answers[0];
  return 0;
}
static CUresult cuMemAllocFromPoolAsync_v11020(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
      CUstream stream) {
  NOTE("cuMemAllocFromPoolAsync@11020(%zu, %llx, %llx)", bytes, U(pool), U(stream));
  *out = answers[0];
  return 0;
}
static CUresult cuMemFreeAsync_v11020(CUdeviceptr address, CUstream stream) {
  NOTE("cuMemFreeAsync@11020(%llx, %llx)", address, U(stream));
  return 0;
}

#define POOL_FORMS(X) \
  X(cuDeviceGetDefaultMemPool, 11020) X(cuDeviceGetMemPool, 11020) X(cuDeviceSetMemPool, 11020) \
  X(cuMemGetDefaultMemPool, 13000) X(cuMemGetMemPool, 13000) X(cuMemSetMemPool, 13000) \
  X(cuMemPoolCreate, 11020) X(cuMemPoolDestroy, 11020) X(cuMemPoolTrimTo, 11020) \
  X(cuMemPoolGetAttribute, 11020) X(cuMemPoolSetAttribute, 11020) X(cuMemPoolGetAccess, 11020) \
  X(cuMemPoolSetAccess, 11020) X(cuMemAllocAsync, 11020) X(cuMemAllocFromPoolAsync, 11020) \
  X(cuMemFreeAsync, 11020)
