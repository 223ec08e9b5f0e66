/* Graphs, their nodes and edges, and what is instantiated from them. */
#ifndef HEADERS
typedef int CUgraphNodeType;
typedef int CUgraphMem_attribute;
typedef uint64_t CUgraphConditionalHandle;
typedef struct { char pad[8]; } CUgraphEdgeData;
typedef struct {
  cuuint64_t flags;
  CUstream hUploadStream;
  CUgraphNode hErrNode_out;
  int result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;
typedef struct {
  int result;
  CUgraphNode errorNode, errorFromNode;
} CUgraphExecUpdateResultInfo;
#endif

static CUresult cuGraphInstantiateWithParams_v12000(CUgraphExec *out, CUgraph graph,
                                                    CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  NOTE("cuGraphInstantiateWithParams@12000(%llx, %llu, %llx)", U(graph),
       (unsigned long long)params->flags, U(params->hUploadStream));
  *out = (CUgraphExec)(uintptr_t)answers[0];
  params->result_out = (int)answers[1];
  params->hErrNode_out = (CUgraphNode)(uintptr_t)(answers[1] ? 0xe0de : 0);
  return answers[1] ? 1 : 0;
}
static CUresult cuGraphExecGetFlags_v12000(CUgraphExec executable, cuuint64_t *out) {
  NOTE("cuGraphExecGetFlags@12000(%llx)", U(executable));
  *out = answers[0];
  return 0;
}
static CUresult cuGraphExecUpdate_v12000(CUgraphExec executable, CUgraph graph,
                                         CUgraphExecUpdateResultInfo *info) {
  NOTE("cuGraphExecUpdate@12000(%llx, %llx)", U(executable), U(graph));
  info->result = (int)answers[0];
  info->errorNode = (CUgraphNode)(uintptr_t)0xe0de;
  info->errorFromNode = (CUgraphNode)(uintptr_t)0xe0df;
  return answers[0] ? 910 : 0;
}
static CUresult cuGraphUpload_v11010(CUgraphExec executable, CUstream stream) {
  NOTE("cuGraphUpload@11010(%llx, %llx)", U(executable), U(stream));
  return 0;
}
static CUresult cuGraphCreate_v10000(CUgraph *out, unsigned flags) {
  NOTE("cuGraphCreate@10000(%u)", flags);
  *out = (CUgraph)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuGraphClone_v10000(CUgraph *out, CUgraph graph) {
  NOTE("cuGraphClone@10000(%llx)", U(graph));
  *out = (CUgraph)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuGraphDebugDotPrint_v11030(CUgraph graph, const char *path, unsigned flags) {
  NOTE("cuGraphDebugDotPrint@11030(%llx, %u)", U(graph), flags);
  FILE *file = fopen(path, "w");
  fprintf(file, "digraph dot { %u }", flags);
  fclose(file);
  return 0;
}
static long long inner_nodes; /* so many that are asked for next are of the host */
static CUresult cuGraphNodeGetType_v10000(CUgraphNode node, CUgraphNodeType *out) {
  NOTE("cuGraphNodeGetType@10000(%llx)", U(node));
  *out = inner_nodes > 0 && inner_nodes-- ? 3 : (CUgraphNodeType)answers[0];
  return 0;
}
static CUresult cuGraphNodeFindInClone_v10000(CUgraphNode *out, CUgraphNode node, CUgraph clone) {
  NOTE("cuGraphNodeFindInClone@10000(%llx, %llx)", U(node), U(clone));
  *out = (CUgraphNode)(uintptr_t)answers[0];
  return 0;
}
static CUresult cuGraphDestroyNode_v10000(CUgraphNode node) {
  NOTE("cuGraphDestroyNode@10000(%llx)", U(node));
  return 0;
}
static CUresult cuGraphNodeSetEnabled_v11060(CUgraphExec executable, CUgraphNode node, unsigned on) {
  NOTE("cuGraphNodeSetEnabled@11060(%llx, %llx, %u)", U(executable), U(node), on);
  return 0;
}
static CUresult cuGraphNodeGetEnabled_v11060(CUgraphExec executable, CUgraphNode node, unsigned *out) {
  NOTE("cuGraphNodeGetEnabled@11060(%llx, %llx)", U(executable), U(node));
  *out = (unsigned)answers[0];
  return 0;
}
/* As many nodes as the first answer says, 100, 101 and so on; one is gone when they are given if
   the second answer is 0x1e55. */
static CUresult give_nodes(CUgraphNode *nodes, size_t *count) {
  size_t all = (size_t)answers[0] - (nodes && answers[1] == 0x1e55);
  for (size_t i = 0; nodes && i < *count && i < all; i++)
    nodes[i] = (CUgraphNode)(uintptr_t)(100 + i);
  *count = all;
  return 0;
}
static CUresult cuGraphGetNodes_v10000(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  NOTE("cuGraphGetNodes@10000(%llx)", U(graph));
  if (U(graph) == 0x1bed) inner_nodes = answers[0];
  return give_nodes(nodes, count);
}
static CUresult cuGraphGetRootNodes_v10000(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  NOTE("cuGraphGetRootNodes@10000(%llx)", U(graph));
  return give_nodes(nodes, count);
}
static CUresult cuGraphGetEdges_v12030(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                                       CUgraphEdgeData *data, size_t *count) {
  NOTE("cuGraphGetEdges@12030(%llx, %d)", U(graph), data != NULL);
  size_t room = *count;
  give_nodes(from, count);
  for (size_t i = 0; to && i < room; i++) to[i] = (CUgraphNode)(uintptr_t)(200 + i);
  return 0;
}
static CUresult cuGraphNodeGetDependencies_v12030(CUgraphNode node, CUgraphNode *nodes,
                                                  CUgraphEdgeData *data, size_t *count) {
  NOTE("cuGraphNodeGetDependencies@12030(%llx, %d)", U(node), data != NULL);
  return give_nodes(nodes, count);
}
static CUresult cuGraphNodeGetDependentNodes_v12030(CUgraphNode node, CUgraphNode *nodes,
                                                    CUgraphEdgeData *data, size_t *count) {
  NOTE("cuGraphNodeGetDependentNodes@12030(%llx, %d)", U(node), data != NULL);
  return give_nodes(nodes, count);
}
static CUresult cuGraphAddDependencies_v12030(CUgraph graph, const CUgraphNode *from,
    const CUgraphNode *to, const CUgraphEdgeData *data, size_t count) {
  NOTE("cuGraphAddDependencies@12030(%llx, %llx, %llx, %d, %zu)", U(graph), U(from[count - 1]),
       U(to[count - 1]), data != NULL, count);
  return 0;
}
static CUresult cuGraphRemoveDependencies_v12030(CUgraph graph, const CUgraphNode *from,
    const CUgraphNode *to, const CUgraphEdgeData *data, size_t count) {
  NOTE("cuGraphRemoveDependencies@12030(%llx, %llx, %llx, %d, %zu)", U(graph), U(from[count - 1]),
       U(to[count - 1]), data != NULL, count);
  return 0;
}
static CUresult cuGraphConditionalHandleCreate_v12030(CUgraphConditionalHandle *out, CUgraph graph,
    CUcontext context, unsigned value, unsigned flags) {
  NOTE("cuGraphConditionalHandleCreate@12030(%llx, %llx, %u, %u)", U(graph), U(context), value, flags);
  *out = answers[0];
  return 0;
}
static CUresult cuDeviceGetGraphMemAttribute_v11040(CUdevice device, CUgraphMem_attribute attribute, void *out) {
  NOTE("cuDeviceGetGraphMemAttribute@11040(%d, %d)", device, attribute);
  *(cuuint64_t *)out = answers[0];
  return 0;
}
static CUresult cuDeviceSetGraphMemAttribute_v11040(CUdevice device, CUgraphMem_attribute attribute, void *value) {
  NOTE("cuDeviceSetGraphMemAttribute@11040(%d, %d, %llu)", device, attribute,
       (unsigned long long)*(cuuint64_t *)value);
  return 0;
}
static CUresult cuDeviceGraphMemTrim_v11040(CUdevice device) {
  NOTE("cuDeviceGraphMemTrim@11040(%d)", device);
  return 0;
}

#define GRAPH_FORMS(X) \
  X(cuGraphInstantiateWithParams, 12000) X(cuGraphExecGetFlags, 12000) \
  X(cuGraphExecUpdate, 12000) X(cuGraphUpload, 11010) X(cuGraphCreate, 10000) \
  X(cuGraphClone, 10000) X(cuGraphDebugDotPrint, 11030) X(cuGraphNodeGetType, 10000) \
  X(cuGraphNodeFindInClone, 10000) X(cuGraphDestroyNode, 10000) \
  X(cuGraphNodeSetEnabled, 11060) X(cuGraphNodeGetEnabled, 11060) X(cuGraphGetNodes, 10000) \
  X(cuGraphGetRootNodes, 10000) X(cuGraphGetEdges, 12030) X(cuGraphNodeGetDependencies, 12030) \
  X(cuGraphNodeGetDependentNodes, 12030) X(cuGraphAddDependencies, 12030) \
  X(cuGraphRemoveDependencies, 12030) X(cuGraphConditionalHandleCreate, 12030) \
  X(cuDeviceGetGraphMemAttribute, 11040) X(cuDeviceSetGraphMemAttribute, 11040) \
  X(cuDeviceGraphMemTrim, 11040)
