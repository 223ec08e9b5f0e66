/* Part of stub_libcuda.c: virtual memory. What must be zero is summed up. */

static const char *properties(const CUmemAllocationProp *memory, char *text) {
  int rest = (memory->win32HandleMetaData != NULL) + memory->allocFlags.compressionType
      + memory->allocFlags.gpuDirectRDMACapable + memory->allocFlags.usage;
  for (size_t i = 0; i < sizeof memory->allocFlags.reserved; i++) rest += memory->allocFlags.reserved[i];
  sprintf(text, "{%d, %d, {%d, %d}, %d}", (int)memory->type, (int)memory->requestedHandleTypes,
          (int)memory->location.type, memory->location.id, rest);
  return text;
}
static CUresult cuMemGetAllocationGranularity_v10020(size_t *out, const CUmemAllocationProp *memory,
      CUmemAllocationGranularity_flags option) {
  char text[128];
  NOTE("cuMemGetAllocationGranularity@10020(%s, %d)", properties(memory, text), (int)option);
  *out = answers[0];
  return 0;
}
static CUresult cuMemAddressReserve_v10020(CUdeviceptr *out, size_t bytes, size_t alignment,
      CUdeviceptr address, unsigned long long flags) {
  NOTE("cuMemAddressReserve@10020(%zu, %zu, %llx, %llu)", bytes, alignment, address, flags);
  *out = answers[0];
  return 0;
}
static CUresult cuMemAddressFree_v10020(CUdeviceptr address, size_t bytes) {
  NOTE("cuMemAddressFree@10020(%llx, %zu)", address, bytes);
  return 0;
}
static CUresult cuMemCreate_v10020(CUmemGenericAllocationHandle *out, size_t bytes,
      const CUmemAllocationProp *memory, unsigned long long flags) {
  char text[128];
  NOTE("cuMemCreate@10020(%zu, %s, %llu)", bytes, properties(memory, text), flags);
  *out = answers[0];
  return 0;
}
static CUresult cuMemMap_v10020(CUdeviceptr address, size_t bytes, size_t offset,
      CUmemGenericAllocationHandle handle, unsigned long long flags) {
  NOTE("cuMemMap@10020(%llx, %zu, %zu, %llx, %llu)", address, bytes, offset, handle, flags);
  return 0;
}
static CUresult cuMemUnmap_v10020(CUdeviceptr address, size_t bytes) {
  NOTE("cuMemUnmap@10020(%llx, %zu)", address, bytes);
  return 0;
}
static CUresult cuMemSetAccess_v10020(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *map,
      size_t count) {
  char text[256] = "";
  for (size_t i = 0; i < count; i++) {
    snprintf(text + strlen(text), sizeof text - strlen(text), " {{%d, %d}, %d}",
             (int)map[i].location.type, map[i].location.id, (int)map[i].flags);
  }
  NOTE("cuMemSetAccess@10020(%llx, %zu,%s, %zu)", address, bytes, text, count);
  return 0;
}
/* The flags are 64-bit, unlike those of a pool. */
static CUresult cuMemGetAccess_v10020(unsigned long long *out, const CUmemLocation *place,
      CUdeviceptr address) {
  NOTE("cuMemGetAccess@10020({%d, %d}, %llx)", (int)place->type, place->id, address);
  *out = answers[0];
  return 0;
}
static CUresult cuMemRelease_v10020(CUmemGenericAllocationHandle handle) {
  NOTE("cuMemRelease@10020(%llx)", handle);
  return 0;
}
static CUresult cuMemRetainAllocationHandle_v11000(CUmemGenericAllocationHandle *out, void *address) {
  NOTE("cuMemRetainAllocationHandle@11000(%llx)", U(address));
  *out = answers[0];
  return 0;
}
static CUresult cuMemGetAllocationPropertiesFromHandle_v10020(CUmemAllocationProp *out,
      CUmemGenericAllocationHandle handle) {
  NOTE("cuMemGetAllocationPropertiesFromHandle@10020(%llx)", handle);
  out->type = 1;
  out->requestedHandleTypes = 1;
  out->location.type = (int)answers[0];
  out->location.id = (int)answers[1];
  out->allocFlags.usage = 7;
  return 0;
}

/* A descriptor is an int: what follows it must stay as it was. */
static CUresult cuMemExportToShareableHandle_v10020(void *out, CUmemGenericAllocationHandle handle,
      CUmemAllocationHandleType type, unsigned long long flags) {
  NOTE("cuMemExportToShareableHandle@10020(%llx, %d, %llu)", handle, (int)type, flags);
  *(int *)out = (int)answers[0];
  return 0;
}
static CUresult cuMemImportFromShareableHandle_v10020(CUmemGenericAllocationHandle *out,
      void *descriptor, CUmemAllocationHandleType type) {
  NOTE("cuMemImportFromShareableHandle@10020(%lld, %d)", (long long)(intptr_t)descriptor, (int)type);
  *out = answers[0];
  return 0;
}

#define VIRTUAL_FORMS(X) \
  X(cuMemGetAllocationGranularity, 10020) X(cuMemAddressReserve, 10020) \
  X(cuMemAddressFree, 10020) X(cuMemCreate, 10020) X(cuMemMap, 10020) X(cuMemUnmap, 10020) \
  X(cuMemSetAccess, 10020) X(cuMemGetAccess, 10020) X(cuMemRelease, 10020) \
  X(cuMemRetainAllocationHandle, 11000) X(cuMemGetAllocationPropertiesFromHandle, 10020) \
  X(cuMemExportToShareableHandle, 10020) X(cuMemImportFromShareableHandle, 10020)
