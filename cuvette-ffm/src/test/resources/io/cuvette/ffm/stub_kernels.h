/* Libraries of kernels. */
#ifndef HEADERS
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef int CUjit_option;
typedef int CUlibraryOption;
#endif

static CUresult cuLibraryLoadData_v12000(CUlibrary *out, const void *code, CUjit_option *options,
                                         void **values, unsigned count, CUlibraryOption *more,
                                         void **more_values, unsigned more_count) {
  NOTE("cuLibraryLoadData@12000(%s, %llx, %llx, %u, %llx, %llx, %u)", (const char *)code, U(options),
       U(values), count, U(more), U(more_values), more_count);
  *out = (CUlibrary)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuLibraryUnload_v12000(CUlibrary library) {
  NOTE("cuLibraryUnload@12000(%llx)", U(library));
  return 0;
}
static CUresult cuLibraryGetKernel_v12000(CUkernel *out, CUlibrary library, const char *name) {
  NOTE("cuLibraryGetKernel@12000(%llx, %s)", U(library), name);
  *out = (CUkernel)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuLibraryGetKernelCount_v12040(unsigned *out, CUlibrary library) {
  NOTE("cuLibraryGetKernelCount@12040(%llx)", U(library));
  *out = (unsigned)answers[0];
  return 0;
}
static CUresult cuLibraryEnumerateKernels_v12040(CUkernel *out, unsigned count, CUlibrary library) {
  NOTE("cuLibraryEnumerateKernels@12040(%u, %llx)", count, U(library));
  for (unsigned i = 0; i < count && i < 2; i++) out[i] = (CUkernel)(uintptr_t)answers[i];
  return 0;
}
static CUresult cuKernelGetName_v12030(const char **out, CUkernel kernel) {
  NOTE("cuKernelGetName@12030(%llx)", U(kernel));
  *out = "kernel of the stub";
  return 0;
}
static CUresult cuKernelGetParamInfo_v12040(CUkernel kernel, size_t index, size_t *offset, size_t *size) {
  NOTE("cuKernelGetParamInfo@12040(%llx, %zu)", U(kernel), index);
  *offset = answers[0]; *size = answers[1];
  return 0;
}

#define KERNEL_FORMS(X) \
  X(cuLibraryLoadData, 12000) X(cuLibraryUnload, 12000) X(cuLibraryGetKernel, 12000) \
  X(cuLibraryGetKernelCount, 12040) X(cuLibraryEnumerateKernels, 12040) X(cuKernelGetName, 12030) \
  X(cuKernelGetParamInfo, 12040)
