/* Libraries of kernels. */
#ifndef HEADERS
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef int CUjit_option;
typedef int CUlibraryOption;
typedef struct CUfunc_st *CUfunction;
typedef int CUfunction_attribute;
typedef size_t (*CUoccupancyB2DSize)(int block);
typedef struct {
  int id;
  char pad[4];
  union {
    char pad[64];
    struct { unsigned x, y, z; } clusterDim;
    int cooperative;
    int programmaticStreamSerializationAllowed;
  } value;
} CUlaunchAttribute;
typedef struct {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
} CUlaunchConfig;
typedef struct CUlinkState_st *CUlinkState;
typedef int CUjitInputType;
#else
_Static_assert(CU_JIT_MAX_REGISTERS == 0 && CU_JIT_INFO_LOG_BUFFER == 3 &&
               CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES == 4 && CU_JIT_ERROR_LOG_BUFFER == 5 &&
               CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES == 6 && CU_JIT_OPTIMIZATION_LEVEL == 7 &&
               CU_JIT_TARGET == 9 && CU_JIT_GENERATE_DEBUG_INFO == 11 && CU_JIT_LOG_VERBOSE == 12 &&
               CU_JIT_GENERATE_LINE_INFO == 13, "options");
_Static_assert(CU_TARGET_COMPUTE_90 == 90 && CU_TARGET_COMPUTE_90A == 0x10000 + 90 &&
               CU_TARGET_COMPUTE_100F == 0x20000 + 100, "targets");
_Static_assert(CU_JIT_INPUT_CUBIN == 0 && CU_JIT_INPUT_PTX == 1 && CU_JIT_INPUT_FATBINARY == 2 &&
               CU_JIT_INPUT_OBJECT == 3 && CU_JIT_INPUT_LIBRARY == 4, "inputs");
#endif

/* The text of a configuration. */
static const char *config_text(const CUlaunchConfig *config, char *text, size_t room) {
  size_t used = snprintf(text, room, "{%u %u %u, %u %u %u, %u, %llx", config->gridDimX, config->gridDimY,
                         config->gridDimZ, config->blockDimX, config->blockDimY, config->blockDimZ,
                         config->sharedMemBytes, U(config->hStream));
  for (unsigned i = 0; i < config->numAttrs && used < room; i++) {
    const CUlaunchAttribute *a = &config->attrs[i];
    if ((int)a->id == 4) {
      used += snprintf(text + used, room - used, ", cluster %u %u %u", a->value.clusterDim.x,
                       a->value.clusterDim.y, a->value.clusterDim.z);
    } else if ((int)a->id == 2) {
      used += snprintf(text + used, room - used, ", cooperative %d", a->value.cooperative);
    } else if ((int)a->id == 6) {
      used += snprintf(text + used, room - used, ", programmatic %d",
                       a->value.programmaticStreamSerializationAllowed);
    } else {
      used += snprintf(text + used, room - used, ", unknown %d", (int)a->id);
    }
  }
  snprintf(text + used, room - used, "}");
  return text;
}

/* Parameters are shown as 4-byte numbers: as many as the first answer says. */
static CUresult cuLaunchKernelEx_v11060(const CUlaunchConfig *config, CUfunction function,
                                        void **parameters, void **extra) {
  char text[300];
  config_text(config, text, 200);
  size_t used = strlen(text);
  for (uint64_t i = 0; i < answers[0]; i++) {
    used += snprintf(text + used, sizeof text - used, ", %d", *(int *)parameters[i]);
  }
  NOTE("cuLaunchKernelEx@11060(%llx, %llx, %s)", U(function), U(extra), text);
  return 0;
}
static CUresult cuKernelGetAttribute_v12000(int *out, CUfunction_attribute attribute, CUkernel kernel,
                                            CUdevice device) {
  NOTE("cuKernelGetAttribute@12000(%d, %llx, %d)", (int)attribute, U(kernel), device);
  *out = (int)answers[0];
  return 0;
}
static CUresult cuKernelSetAttribute_v12000(CUfunction_attribute attribute, int value, CUkernel kernel,
                                            CUdevice device) {
  NOTE("cuKernelSetAttribute@12000(%d, %d, %llx, %d)", (int)attribute, value, U(kernel), device);
  return 0;
}
static CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050(int *out, CUfunction function, int block,
                                                                  size_t shared) {
  NOTE("cuOccupancyMaxActiveBlocksPerMultiprocessor@6050(%llx, %d, %zu)", U(function), block, shared);
  *out = (int)answers[0];
  return 0;
}
static CUresult cuOccupancyMaxPotentialBlockSize_v6050(int *grid, int *block, CUfunction function,
                                                       CUoccupancyB2DSize sizes, size_t shared, int limit) {
  NOTE("cuOccupancyMaxPotentialBlockSize@6050(%llx, %llx, %zu, %d)", U(function), U(sizes), shared, limit);
  *grid = (int)answers[0]; *block = (int)answers[1];
  return 0;
}
static CUresult cuOccupancyAvailableDynamicSMemPerBlock_v10020(size_t *out, CUfunction function, int blocks,
                                                               int block) {
  NOTE("cuOccupancyAvailableDynamicSMemPerBlock@10020(%llx, %d, %d)", U(function), blocks, block);
  *out = answers[0];
  return 0;
}
static CUresult cuOccupancyMaxActiveClusters_v11070(int *out, CUfunction function,
                                                    const CUlaunchConfig *config) {
  char text[200];
  NOTE("cuOccupancyMaxActiveClusters@11070(%llx, %s)", U(function), config_text(config, text, sizeof text));
  *out = (int)answers[0];
  return 0;
}
static CUresult cuOccupancyMaxPotentialClusterSize_v11070(int *out, CUfunction function,
                                                          const CUlaunchConfig *config) {
  char text[200];
  NOTE("cuOccupancyMaxPotentialClusterSize@11070(%llx, %s)", U(function),
       config_text(config, text, sizeof text));
  *out = (int)answers[0];
  return 0;
}

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
  if (U(kernel) != 0xc0de) return 0;
  *offset = 4 * index; *size = 4; /* a kernel with two numbers */
  return index < 2 ? 0 : 1;
}

/* The linker "links" to the text of what it was given. */
static char linked[1000];
static CUresult cuLinkCreate_v6050(unsigned count, CUjit_option *options, void **values, CUlinkState *out) {
  size_t used = 0;
  char text[300] = "";
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == 3) strcpy(values[i], "the infos");
    if (options[i] == 5) strcpy(values[i], "the errors");
    if (options[i] != 3 && options[i] != 5)
      used += snprintf(text + used, sizeof text - used, " %d=%llx", (int)options[i], U(values[i]));
  }
  NOTE("cuLinkCreate@6050(%s)", text);
  linked[0] = 0;
  *out = (CUlinkState)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuLinkAddData_v6050(CUlinkState state, CUjitInputType type, void *data, size_t size,
                                    const char *name, unsigned count, CUjit_option *options, void **values) {
  NOTE("cuLinkAddData@6050(%llx, %d, %zu, %s, %u, %llx, %llx)", U(state), (int)type, size, name, count,
       U(options), U(values));
  strncat(linked, data, sizeof linked - strlen(linked) - 1);
  return 0;
}
static CUresult cuLinkComplete_v5050(CUlinkState state, void **out, size_t *size) {
  NOTE("cuLinkComplete@5050(%llx)", U(state));
  *out = linked;
  *size = strlen(linked);
  return 0;
}
static CUresult cuLinkDestroy_v5050(CUlinkState state) {
  NOTE("cuLinkDestroy@5050(%llx)", U(state));
  memset(linked, 'x', sizeof linked - 1);
  return 0;
}

#define KERNEL_FORMS(X) \
  X(cuLinkCreate, 6050) X(cuLinkAddData, 6050) X(cuLinkComplete, 5050) \
  X(cuLinkDestroy, 5050) X(cuLibraryLoadData, 12000) X(cuLibraryUnload, 12000) X(cuLibraryGetKernel, 12000) \
  X(cuLibraryGetKernelCount, 12040) X(cuLibraryEnumerateKernels, 12040) X(cuKernelGetName, 12030) \
  X(cuKernelGetParamInfo, 12040) X(cuLaunchKernelEx, 11060) X(cuKernelGetAttribute, 12000) \
  X(cuKernelSetAttribute, 12000) X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
  X(cuOccupancyMaxPotentialBlockSize, 6050) X(cuOccupancyAvailableDynamicSMemPerBlock, 10020) \
  X(cuOccupancyMaxActiveClusters, 11070) X(cuOccupancyMaxPotentialClusterSize, 11070)
