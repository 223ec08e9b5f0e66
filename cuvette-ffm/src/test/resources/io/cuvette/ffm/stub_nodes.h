/* What nodes of graphs do, and captures into graphs. */
#ifndef HEADERS
typedef struct {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams, **extra;
  CUkernel kern;
  CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;
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
typedef struct {
  int srcAccessOrder;
  CUmemLocation srcLocHint, dstLocHint;
  unsigned flags;
} CUmemcpyAttributes;
typedef struct {
  CUdeviceptr dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;
typedef struct { CUhostFn fn; void *userData; } CUDA_HOST_NODE_PARAMS;
typedef struct {
  CUmemPoolProps poolProps;
  const CUmemAccessDesc *accessDescs;
  size_t accessDescCount, bytesize;
  CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;
typedef struct {
  CUgraphConditionalHandle handle;
  int type;
  unsigned size;
  CUgraph *phGraph_out;
  CUcontext ctx;
} CUDA_CONDITIONAL_NODE_PARAMS;
typedef struct {
  CUgraphNodeType type;
  int reserved0[3];
  union { long long reserved1[29]; CUDA_CONDITIONAL_NODE_PARAMS conditional; };
  long long reserved2;
} CUgraphNodeParams;
typedef int CUkernelNodeAttrID;
typedef union {
  char pad[64];
  struct { unsigned x, y, z; } clusterDim;
  int cooperative, priority;
} CUkernelNodeAttrValue;
#endif

/* Nodes. The last structure that a node was given is what it answers; a node is 0x100 and more. */
CUDA_KERNEL_NODE_PARAMS kernel_node_seen;
CUDA_MEMCPY3D copy_node_seen;
CUDA_MEMSET_NODE_PARAMS fill_node;
CUDA_HOST_NODE_PARAMS host_node;
CUDA_MEM_ALLOC_NODE_PARAMS alloc_node;
static CUmemAccessDesc alloc_access[3];
static CUgraph bodies[3];
static int kernel_values[2];
static void *kernel_table[2] = {&kernel_values[0], &kernel_values[1]};
CUkernelNodeAttrValue stub_attributes[16];

void stub_run_host_node(void) { host_node.fn(host_node.userData); }

/* The nodes waited for, such as "a b". */
static const char *nodes_text(const CUgraphNode *nodes, size_t count, char *text) {
  text[0] = 0;
  for (size_t i = 0; i < count && i < 8; i++) sprintf(text + strlen(text), i ? " %llx" : "%llx", U(nodes[i]));
  return text;
}
#define ADDED(out) *(out) = (CUgraphNode)(uintptr_t)0x100; return 0
static void keep_kernel(const CUDA_KERNEL_NODE_PARAMS *p) {
  kernel_node_seen = *p;
  for (int i = 0; p->kernelParams && i < 2; i++) kernel_values[i] = *(int *)p->kernelParams[i];
  if (p->kernelParams) kernel_node_seen.kernelParams = kernel_table;
}
static const char *kernel_text(const CUDA_KERNEL_NODE_PARAMS *p, char *text) {
  sprintf(text, "{%llx, %u %u %u, %u %u %u, %u, %d %d, %llx, %llx, %llx}", U(p->func), p->gridDimX,
          p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ, p->sharedMemBytes,
          p->kernelParams ? *(int *)p->kernelParams[0] : 0, p->kernelParams ? *(int *)p->kernelParams[1] : 0,
          U(p->extra), U(p->kern), U(p->ctx));
  return text;
}
/* What a copy of one row does not use is 0. */
static const char *copy_text(const CUDA_MEMCPY3D *p, char *text) {
  unsigned long long others = p->srcXInBytes | p->srcY | p->srcZ | p->srcLOD | U(p->srcHost) |
      U(p->srcArray) | U(p->reserved0) | p->srcPitch | p->srcHeight | p->dstXInBytes | p->dstY | p->dstZ |
      p->dstLOD | U(p->dstHost) | U(p->dstArray) | U(p->reserved1) | p->dstPitch | p->dstHeight;
  sprintf(text, "{%d %llx, %d %llx, %zu %zu %zu, %llx}", (int)p->dstMemoryType, (unsigned long long)p->dstDevice,
          (int)p->srcMemoryType, (unsigned long long)p->srcDevice, p->WidthInBytes, p->Height, p->Depth, others);
  return text;
}
/* Rows: each side with its pitch and the rows of a layer. */
static CUresult cuMemcpy3DAsync_v3020(const CUDA_MEMCPY3D *p, CUstream stream) {
  unsigned long long others = p->srcXInBytes | p->srcY | p->srcZ | p->srcLOD | U(p->srcHost) |
      U(p->srcArray) | U(p->reserved0) | p->dstXInBytes | p->dstY | p->dstZ | p->dstLOD | U(p->dstHost) |
      U(p->dstArray) | U(p->reserved1);
  NOTE("cuMemcpy3DAsync@3020({%d %llx %zu %zu, %d %llx %zu %zu, %zu %zu %zu, %llx}, %llx)",
       (int)p->dstMemoryType, (unsigned long long)p->dstDevice, p->dstPitch, p->dstHeight,
       (int)p->srcMemoryType, (unsigned long long)p->srcDevice, p->srcPitch, p->srcHeight,
       p->WidthInBytes, p->Height, p->Depth, others, U(stream));
  return 0;
}
/* Ranges, and the attributes that are for all of them. */
static const char *batch_text(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes, size_t count,
                              const CUmemcpyAttributes *p, const size_t *first, size_t kinds, char *text) {
  char *at = text;
  for (size_t i = 0; i < count && i < 4; i++)
    at += sprintf(at, "%llx %llx %zu, ", (unsigned long long)to[i], (unsigned long long)from[i], bytes[i]);
  sprintf(at, "%zu, {%d, %d %d, %d %d, %u} from %zu, %zu", count, (int)p->srcAccessOrder, (int)p->srcLocHint.type,
          p->srcLocHint.id, (int)p->dstLocHint.type, p->dstLocHint.id, p->flags, *first, kinds);
  return text;
}
static CUresult cuMemcpyBatchAsync_v13000(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
    CUmemcpyAttributes *p, size_t *first, size_t kinds, CUstream stream) {
  char text[400];
  NOTE("cuMemcpyBatchAsync@13000(%s, %llx)", batch_text(to, from, bytes, count, p, first, kinds, text), U(stream));
  return 0;
}
/* The second copy is what fails, if any does, or the one before the second answer; none if it is -1. */
static CUresult cuMemcpyBatchAsync_v12080(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
    CUmemcpyAttributes *p, size_t *first, size_t kinds, size_t *failed, CUstream stream) {
  char text[400];
  if (answers[1] != (uint64_t)-1) *failed = answers[1] ? answers[1] - 1 : 1;
  NOTE("cuMemcpyBatchAsync@12080(%s, %llx)", batch_text(to, from, bytes, count, p, first, kinds, text), U(stream));
  return 0;
}
static const char *fill_text(const CUDA_MEMSET_NODE_PARAMS *p, char *text) {
  sprintf(text, "{%llx, %zu, %x, %u, %zu, %zu}", (unsigned long long)p->dst, p->pitch, p->value,
          p->elementSize, p->width, p->height);
  return text;
}
static CUresult cuGraphAddKernelNode_v12000(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes,
                                            size_t count, const CUDA_KERNEL_NODE_PARAMS *p) {
  char text[200], after[200];
  NOTE("cuGraphAddKernelNode@12000(%llx, {%s}, %s)", U(graph), nodes_text(nodes, count, after), kernel_text(p, text));
  keep_kernel(p);
  ADDED(out);
}
static CUresult cuGraphKernelNodeGetParams_v12000(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *p) {
  NOTE("cuGraphKernelNodeGetParams@12000(%llx)", U(node));
  *p = kernel_node_seen;
  return 0;
}
static CUresult cuGraphKernelNodeSetParams_v12000(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) {
  char text[200];
  NOTE("cuGraphKernelNodeSetParams@12000(%llx, %s)", U(node), kernel_text(p, text));
  keep_kernel(p);
  return 0;
}
static CUresult cuGraphExecKernelNodeSetParams_v12000(CUgraphExec executable, CUgraphNode node,
                                                      const CUDA_KERNEL_NODE_PARAMS *p) {
  char text[200];
  NOTE("cuGraphExecKernelNodeSetParams@12000(%llx, %llx, %s)", U(executable), U(node), kernel_text(p, text));
  return 0;
}
static CUresult cuGraphKernelNodeGetAttribute_v11000(CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue *out) {
  NOTE("cuGraphKernelNodeGetAttribute@11000(%llx, %d)", U(node), (int)id);
  *out = stub_attributes[id];
  return 0;
}
static CUresult cuGraphKernelNodeSetAttribute_v11000(CUgraphNode node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value) {
  NOTE("cuGraphKernelNodeSetAttribute@11000(%llx, %d, %d %d %d)", U(node), (int)id, (int)value->clusterDim.x,
       (int)value->clusterDim.y, (int)value->clusterDim.z);
  stub_attributes[id] = *value;
  return 0;
}
/* Two parameters of 4 bytes. */
static CUresult cuFuncGetParamInfo_v12040(CUfunction function, size_t index, size_t *offset, size_t *size) {
  NOTE("cuFuncGetParamInfo@12040(%llx, %zu)", U(function), index);
  *offset = 4 * index; *size = 4;
  return index < 2 ? 0 : 1;
}
static CUresult cuGraphAddMemcpyNode_v10000(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes,
                                            size_t count, const CUDA_MEMCPY3D *p, CUcontext context) {
  char text[200], after[200];
  NOTE("cuGraphAddMemcpyNode@10000(%llx, {%s}, %s, %llx)", U(graph), nodes_text(nodes, count, after),
       copy_text(p, text), U(context));
  copy_node_seen = *p;
  ADDED(out);
}
static CUresult cuGraphMemcpyNodeGetParams_v10000(CUgraphNode node, CUDA_MEMCPY3D *p) {
  NOTE("cuGraphMemcpyNodeGetParams@10000(%llx)", U(node));
  *p = copy_node_seen;
  return 0;
}
static CUresult cuGraphMemcpyNodeSetParams_v10000(CUgraphNode node, const CUDA_MEMCPY3D *p) {
  char text[200];
  NOTE("cuGraphMemcpyNodeSetParams@10000(%llx, %s)", U(node), copy_text(p, text));
  return 0;
}
static CUresult cuGraphExecMemcpyNodeSetParams_v10020(CUgraphExec executable, CUgraphNode node,
                                                      const CUDA_MEMCPY3D *p, CUcontext context) {
  char text[200];
  NOTE("cuGraphExecMemcpyNodeSetParams@10020(%llx, %llx, %s, %llx)", U(executable), U(node),
       copy_text(p, text), U(context));
  return 0;
}
static CUresult cuGraphAddMemsetNode_v10000(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes,
                                            size_t count, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context) {
  char text[200], after[200];
  NOTE("cuGraphAddMemsetNode@10000(%llx, {%s}, %s, %llx)", U(graph), nodes_text(nodes, count, after),
       fill_text(p, text), U(context));
  fill_node = *p;
  ADDED(out);
}
static CUresult cuGraphMemsetNodeGetParams_v10000(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *p) {
  NOTE("cuGraphMemsetNodeGetParams@10000(%llx)", U(node));
  *p = fill_node;
  return 0;
}
static CUresult cuGraphMemsetNodeSetParams_v10000(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p) {
  char text[200];
  NOTE("cuGraphMemsetNodeSetParams@10000(%llx, %s)", U(node), fill_text(p, text));
  return 0;
}
static CUresult cuGraphExecMemsetNodeSetParams_v10020(CUgraphExec executable, CUgraphNode node,
                                                      const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context) {
  char text[200];
  NOTE("cuGraphExecMemsetNodeSetParams@10020(%llx, %llx, %s, %llx)", U(executable), U(node),
       fill_text(p, text), U(context));
  return 0;
}
static CUresult cuGraphAddHostNode_v10000(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes,
                                          size_t count, const CUDA_HOST_NODE_PARAMS *p) {
  char after[200];
  NOTE("cuGraphAddHostNode@10000(%llx, {%s})", U(graph), nodes_text(nodes, count, after));
  host_node = *p;
  ADDED(out);
}
static CUresult cuGraphHostNodeGetParams_v10000(CUgraphNode node, CUDA_HOST_NODE_PARAMS *p) {
  NOTE("cuGraphHostNodeGetParams@10000(%llx)", U(node));
  *p = host_node;
  return 0;
}
static CUresult cuGraphHostNodeSetParams_v10000(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *p) {
  NOTE("cuGraphHostNodeSetParams@10000(%llx)", U(node));
  host_node = *p;
  return 0;
}
static CUresult cuGraphExecHostNodeSetParams_v10020(CUgraphExec executable, CUgraphNode node,
                                                    const CUDA_HOST_NODE_PARAMS *p) {
  NOTE("cuGraphExecHostNodeSetParams@10020(%llx, %llx)", U(executable), U(node));
  host_node = *p;
  return 0;
}
static CUresult cuGraphAddChildGraphNode_v10000(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes,
                                                size_t count, CUgraph child) {
  char after[200];
  NOTE("cuGraphAddChildGraphNode@10000(%llx, {%s}, %llx)", U(graph), nodes_text(nodes, count, after), U(child));
  ADDED(out);
}
static CUresult cuGraphChildGraphNodeGetGraph_v10000(CUgraphNode node, CUgraph *out) {
  NOTE("cuGraphChildGraphNodeGetGraph@10000(%llx)", U(node));
  *out = (CUgraph)(uintptr_t)answers[1];
  return 0;
}
static CUresult cuGraphExecChildGraphNodeSetParams_v11010(CUgraphExec executable, CUgraphNode node, CUgraph child) {
  NOTE("cuGraphExecChildGraphNodeSetParams@11010(%llx, %llx, %llx)", U(executable), U(node), U(child));
  return 0;
}
static CUresult cuGraphAddEmptyNode_v10000(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes, size_t count) {
  char after[200];
  NOTE("cuGraphAddEmptyNode@10000(%llx, {%s})", U(graph), nodes_text(nodes, count, after));
  ADDED(out);
}
static CUresult cuGraphAddEventRecordNode_v11010(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes,
                                                 size_t count, CUevent event) {
  char after[200];
  NOTE("cuGraphAddEventRecordNode@11010(%llx, {%s}, %llx)", U(graph), nodes_text(nodes, count, after), U(event));
  ADDED(out);
}
static CUresult cuGraphAddEventWaitNode_v11010(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes,
                                               size_t count, CUevent event) {
  char after[200];
  NOTE("cuGraphAddEventWaitNode@11010(%llx, {%s}, %llx)", U(graph), nodes_text(nodes, count, after), U(event));
  ADDED(out);
}
#define EVENT_OF(kind) \
  static CUresult cuGraphEvent##kind##NodeGetEvent_v11010(CUgraphNode node, CUevent *out) { \
    NOTE("cuGraphEvent" #kind "NodeGetEvent@11010(%llx)", U(node)); \
    *out = (CUevent)(uintptr_t)answers[1]; \
    return 0; \
  } \
  static CUresult cuGraphEvent##kind##NodeSetEvent_v11010(CUgraphNode node, CUevent event) { \
    NOTE("cuGraphEvent" #kind "NodeSetEvent@11010(%llx, %llx)", U(node), U(event)); \
    return 0; \
  } \
  static CUresult cuGraphExecEvent##kind##NodeSetEvent_v11010(CUgraphExec executable, CUgraphNode node, CUevent event) { \
    NOTE("cuGraphExecEvent" #kind "NodeSetEvent@11010(%llx, %llx, %llx)", U(executable), U(node), U(event)); \
    return 0; \
  }
EVENT_OF(Record)
EVENT_OF(Wait)
static CUresult cuGraphAddMemAllocNode_v11040(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes,
                                              size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *p) {
  char after[200], access[200] = "";
  for (size_t i = 0; i < p->accessDescCount && i < 2; i++) {
    alloc_access[i] = p->accessDescs[i];
    sprintf(access + strlen(access), " %d:%d=%d", (int)p->accessDescs[i].location.type,
            p->accessDescs[i].location.id, (int)p->accessDescs[i].flags);
  }
  if (!p->accessDescCount && p->accessDescs) strcat(access, " none");
  NOTE("cuGraphAddMemAllocNode@11040(%llx, {%s}, {%d, %d, %d:%d, %llx, %zu, %d}, {%s}, %zu, %llx)", U(graph),
       nodes_text(nodes, count, after), (int)p->poolProps.allocType, (int)p->poolProps.handleTypes,
       (int)p->poolProps.location.type, p->poolProps.location.id, U(p->poolProps.win32SecurityAttributes),
       p->poolProps.maxSize, p->poolProps.usage, access, p->bytesize, (unsigned long long)p->dptr);
  p->dptr = answers[0];
  alloc_node = *p;
  /* as if a program in C had named a node of the host as well */
  size_t named = p->accessDescCount < 2 ? p->accessDescCount : 2;
  alloc_access[named].location.type = 3;
  alloc_access[named].location.id = 1;
  alloc_node.accessDescs = alloc_access;
  alloc_node.accessDescCount = named + 1;
  ADDED(out);
}
static CUresult cuGraphMemAllocNodeGetParams_v11040(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *p) {
  NOTE("cuGraphMemAllocNodeGetParams@11040(%llx)", U(node));
  *p = alloc_node;
  return 0;
}
static CUresult cuGraphAddMemFreeNode_v11040(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes,
                                             size_t count, CUdeviceptr address) {
  char after[200];
  NOTE("cuGraphAddMemFreeNode@11040(%llx, {%s}, %llx)", U(graph), nodes_text(nodes, count, after),
       (unsigned long long)address);
  ADDED(out);
}
static CUresult cuGraphMemFreeNodeGetParams_v11040(CUgraphNode node, CUdeviceptr *out) {
  NOTE("cuGraphMemFreeNodeGetParams@11040(%llx)", U(node));
  *out = answers[1];
  return 0;
}
static CUresult cuGraphAddNode_v12030(CUgraphNode *out, CUgraph graph, const CUgraphNode *nodes,
                                      const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *p) {
  char after[200];
  long long others = p->reserved0[0] | p->reserved0[1] | p->reserved0[2] | p->reserved2 | U(p->conditional.phGraph_out);
  for (int i = 4; i < 29; i++) others |= p->reserved1[i];
  NOTE("cuGraphAddNode@12030(%llx, {%s}, %llx, %d, {%llx, %d, %u, %llx}, %llx)", U(graph),
       nodes_text(nodes, count, after), U(edges), (int)p->type, (unsigned long long)p->conditional.handle,
       (int)p->conditional.type, p->conditional.size, U(p->conditional.ctx), (unsigned long long)others);
  for (int i = 0; i < 3; i++) bodies[i] = (CUgraph)(uintptr_t)(0xb0d1 + i);
  p->conditional.phGraph_out = bodies;
  ADDED(out);
}
static CUresult cuGraphReleaseUserObject_v11030(CUgraph graph, CUuserObject object, unsigned count) {
  NOTE("cuGraphReleaseUserObject@11030(%llx, %llx, %u)", U(graph), U(object), count);
  return 0;
}
/* As many nodes as the second answer says; the first is the status. */
static CUgraphNode captured[64];
static CUresult cuStreamGetCaptureInfo_v12030(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
    CUgraph *graph, const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count) {
  NOTE("cuStreamGetCaptureInfo@12030(%llx, %llx, %llx)", U(stream), U(id), U(graph));
  *status = (CUstreamCaptureStatus)answers[0];
  *count = answers[1];
  for (int i = 0; i < 64; i++) captured[i] = (CUgraphNode)(uintptr_t)(100 + i);
  *nodes = captured;
  *edges = NULL;
  return 0;
}
static CUresult cuStreamBeginCaptureToGraph_v12030(CUstream stream, CUgraph graph, const CUgraphNode *nodes,
    const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode capture) {
  char after[200];
  NOTE("cuStreamBeginCaptureToGraph@12030(%llx, %llx, {%s}, %llx, %d)", U(stream), U(graph),
       nodes_text(nodes, count, after), U(edges), (int)capture);
  return 0;
}
static CUresult cuStreamUpdateCaptureDependencies_v12030(CUstream stream, CUgraphNode *nodes,
    const CUgraphEdgeData *edges, size_t count, unsigned flags) {
  char after[200];
  NOTE("cuStreamUpdateCaptureDependencies@12030(%llx, {%s}, %llx, %u)", U(stream),
       nodes_text(nodes, count, after), U(edges), flags);
  return 0;
}

#define NODE_FORMS(X) \
  X(cuMemcpy3DAsync, 3020) X(cuMemcpyBatchAsync, 12080) X(cuMemcpyBatchAsync, 13000) \
  X(cuGraphAddKernelNode, 12000) X(cuGraphKernelNodeGetParams, 12000) \
  X(cuGraphKernelNodeSetParams, 12000) X(cuGraphExecKernelNodeSetParams, 12000) \
  X(cuGraphKernelNodeGetAttribute, 11000) X(cuGraphKernelNodeSetAttribute, 11000) \
  X(cuFuncGetParamInfo, 12040) X(cuGraphAddMemcpyNode, 10000) \
  X(cuGraphMemcpyNodeGetParams, 10000) X(cuGraphMemcpyNodeSetParams, 10000) \
  X(cuGraphExecMemcpyNodeSetParams, 10020) X(cuGraphAddMemsetNode, 10000) \
  X(cuGraphMemsetNodeGetParams, 10000) X(cuGraphMemsetNodeSetParams, 10000) \
  X(cuGraphExecMemsetNodeSetParams, 10020) X(cuGraphAddHostNode, 10000) \
  X(cuGraphHostNodeGetParams, 10000) X(cuGraphHostNodeSetParams, 10000) \
  X(cuGraphExecHostNodeSetParams, 10020) X(cuGraphAddChildGraphNode, 10000) \
  X(cuGraphChildGraphNodeGetGraph, 10000) X(cuGraphExecChildGraphNodeSetParams, 11010) \
  X(cuGraphAddEmptyNode, 10000) X(cuGraphAddEventRecordNode, 11010) \
  X(cuGraphAddEventWaitNode, 11010) X(cuGraphEventRecordNodeGetEvent, 11010) \
  X(cuGraphEventRecordNodeSetEvent, 11010) X(cuGraphExecEventRecordNodeSetEvent, 11010) \
  X(cuGraphEventWaitNodeGetEvent, 11010) X(cuGraphEventWaitNodeSetEvent, 11010) \
  X(cuGraphExecEventWaitNodeSetEvent, 11010) X(cuGraphAddMemAllocNode, 11040) \
  X(cuGraphMemAllocNodeGetParams, 11040) X(cuGraphAddMemFreeNode, 11040) \
  X(cuGraphMemFreeNodeGetParams, 11040) X(cuGraphAddNode, 12030) \
  X(cuGraphReleaseUserObject, 11030) X(cuStreamGetCaptureInfo, 12030) \
  X(cuStreamBeginCaptureToGraph, 12030) X(cuStreamUpdateCaptureDependencies, 12030)
