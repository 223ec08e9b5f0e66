/* Part of stub_libcuda.c: memory and events of other processes. */

/* 64 bytes as hexadecimal. */
static const char *hex(const void *bytes, char *text) {
  for (int i = 0; i < 64; i++) sprintf(text + 2 * i, "%02x", ((const unsigned char *)bytes)[i]);
  return text;
}
static void fill(void *bytes) {
  for (int i = 0; i < 64; i++) ((unsigned char *)bytes)[i] = (unsigned char)(200 + i);
}

/* A descriptor is an int: what follows it must stay as it was. */
static CUresult cuMemPoolExportToShareableHandle_v11020(void *out, CUmemoryPool pool,
      CUmemAllocationHandleType type, unsigned long long flags) {
  NOTE("cuMemPoolExportToShareableHandle@11020(%llx, %d, %llu)", U(pool), (int)type,
       flags);
  *(int *)out = (int)answers[0];
  return 0;
}
static CUresult cuMemPoolImportFromShareableHandle_v11020(CUmemoryPool *out, void *descriptor,
      CUmemAllocationHandleType type, unsigned long long flags) {
  NOTE("cuMemPoolImportFromShareableHandle@11020(%lld, %d, %llu)", (long long)(intptr_t)descriptor,
       (int)type, flags);
  *out = (CUmemoryPool)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuMemPoolExportPointer_v11020(CUmemPoolPtrExportData *out, CUdeviceptr address) {
  NOTE("cuMemPoolExportPointer@11020(%llx)", address);
  fill(out);
  return 0;
}
static CUresult cuMemPoolImportPointer_v11020(CUdeviceptr *out, CUmemoryPool pool,
      CUmemPoolPtrExportData *data) {
  char text[129];
  NOTE("cuMemPoolImportPointer@11020(%llx, %s)", U(pool), hex(data, text));
  *out = answers[0];
  return 0;
}
static CUresult cuIpcGetMemHandle_v4010(CUipcMemHandle *out, CUdeviceptr address) {
  NOTE("cuIpcGetMemHandle@4010(%llx)", address);
  fill(out);
  return 0;
}
static CUresult cuIpcOpenMemHandle_v11000(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags) {
  char text[129];
  NOTE("cuIpcOpenMemHandle@11000(%s, %u)", hex(&handle, text), flags);
  *out = answers[0];
  return 0;
}
static CUresult cuIpcCloseMemHandle_v4010(CUdeviceptr address) {
  NOTE("cuIpcCloseMemHandle@4010(%llx)", address);
  return 0;
}
static CUresult cuIpcGetEventHandle_v4010(CUipcEventHandle *out, CUevent event) {
  NOTE("cuIpcGetEventHandle@4010(%llx)", U(event));
  fill(out);
  return 0;
}
static CUresult cuIpcOpenEventHandle_v4010(CUevent *out, CUipcEventHandle handle) {
  char text[129];
  NOTE("cuIpcOpenEventHandle@4010(%s)", hex(&handle, text));
  *out = (CUevent)(uintptr_t)answers[0];
  return 0;
}

#define IPC_FORMS(X) \
  X(cuMemPoolExportToShareableHandle, 11020) X(cuMemPoolImportFromShareableHandle, 11020) \
  X(cuMemPoolExportPointer, 11020) X(cuMemPoolImportPointer, 11020) X(cuIpcGetMemHandle, 4010) \
  X(cuIpcOpenMemHandle, 11000) X(cuIpcCloseMemHandle, 4010) X(cuIpcGetEventHandle, 4010) \
  X(cuIpcOpenEventHandle, 4010)
