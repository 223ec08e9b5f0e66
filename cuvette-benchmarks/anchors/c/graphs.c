/* What graphs of 100 kernels cost from C: graphs PTX. Capture and instantiation, update by a graph with other
 * parameters, launch until the call returns and until the graph has run. What was made is destroyed untimed. */
#include "anchor.h"

#define KERNELS 100
#define TURNS 50
#define REPETITIONS 40

static __typeof__(&cuLaunchKernelEx) launch_kernel;
static __typeof__(&cuStreamBeginCapture) begin_capture;
static __typeof__(&cuStreamEndCapture) end_capture;
static __typeof__(&cuGraphInstantiateWithParams) instantiate_graph;
static __typeof__(&cuGraphExecUpdate) update_graph;
static __typeof__(&cuGraphLaunch) launch_graph;
static __typeof__(&cuStreamSynchronize) synchronize;
static __typeof__(&cuGraphDestroy) destroy_graph;
static __typeof__(&cuGraphExecDestroy) destroy_executable;
static CUlaunchConfig config;
static CUfunction kernel;
static CUdeviceptr x, y;

static void* read_all(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) anchor_missing("the PTX cannot be read");
  char* text = calloc(1, 1 << 16);
  if (!fread(text, 1, (1 << 16) - 1, file)) anchor_missing("the PTX is empty");
  fclose(file);
  return text;
}

static CUgraph capture(int number) {
  CUgraph graph;
  CHECK(begin_capture(config.hStream, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (int i = 0; i < KERNELS; i++) {
    float factor = 1;
    void* arguments[] = {&x, &y, &factor, &number};
    CHECK(launch_kernel(&config, kernel, arguments, NULL));
  }
  CHECK(end_capture(config.hStream, &graph));
  return graph;
}

static CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec executable;
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {0};
  CHECK(instantiate_graph(&executable, graph, &parameters));
  return executable;
}

static CUgraph graphs[2];
static CUgraphExec executable;

/* Each gives the nanoseconds that count. */
static double launch_once(int turn) {
  (void)turn;
  double start = anchor_nanos();
  CHECK(launch_graph(executable, config.hStream));
  double nanos = anchor_nanos() - start;
  CHECK(synchronize(config.hStream));
  return nanos;
}

static double launch_and_wait(int turn) {
  (void)turn;
  double start = anchor_nanos();
  CHECK(launch_graph(executable, config.hStream));
  CHECK(synchronize(config.hStream));
  return anchor_nanos() - start;
}

static double captured_nanos; /* of the last turn of capture_and_instantiate, without the instantiation */

static double capture_and_instantiate(int turn) {
  (void)turn;
  double start = anchor_nanos();
  CUgraph graph = capture(1);
  captured_nanos = anchor_nanos() - start;
  CUgraphExec made = instantiate(graph);
  double nanos = anchor_nanos() - start;
  CHECK(destroy_executable(made));
  CHECK(destroy_graph(graph));
  return nanos;
}

static double capture_alone(int turn) {
  capture_and_instantiate(turn);
  return captured_nanos;
}

static double update(int turn) {
  CUgraphExecUpdateResultInfo result;
  double start = anchor_nanos();
  CHECK(update_graph(executable, graphs[(turn + 1) % 2], &result));
  return anchor_nanos() - start;
}

static double launch_kernel_once(int turn) {
  float factor = 1;
  void* arguments[] = {&x, &y, &factor, &turn};
  double start = anchor_nanos();
  for (int i = 0; i < KERNELS; i++) CHECK(launch_kernel(&config, kernel, arguments, NULL));
  double nanos = anchor_nanos() - start;
  CHECK(synchronize(config.hStream));
  return nanos / KERNELS;
}

static void measure(const char* work, const char* metric, double (*once)(int turn)) {
  double best = 1e18;
  for (int r = -REPETITIONS; r < REPETITIONS; r++) {
    double nanos = 0;
    for (int i = 0; i < TURNS; i++) nanos += once(i);
    if (r >= 0 && nanos / TURNS < best) best = nanos / TURNS;
  }
  anchor_emit(work, metric, best, 1);
}

int main(int count, char** arguments) {
  anchor_open();
  if (count != 2) anchor_missing("usage: graphs PTX");
  void* ptx = read_all(arguments[1]);
  CUlibrary library;
  CUkernel of_library;
  CHECK(CU(cuLibraryLoadData)(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
  CHECK(CU(cuLibraryGetKernel)(&of_library, library, "nothingOfFour"));
  kernel = (CUfunction)of_library;
  CHECK(CU(cuMemAlloc)(&x, 1024));
  CHECK(CU(cuMemAlloc)(&y, 1024));
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  CHECK(CU(cuStreamCreate)(&config.hStream, CU_STREAM_NON_BLOCKING));
  launch_kernel = CU(cuLaunchKernelEx);
  begin_capture = CU(cuStreamBeginCapture);
  end_capture = CU(cuStreamEndCapture);
  instantiate_graph = CU(cuGraphInstantiateWithParams);
  update_graph = CU(cuGraphExecUpdate);
  launch_graph = CU(cuGraphLaunch);
  synchronize = CU(cuStreamSynchronize);
  destroy_graph = CU(cuGraphDestroy);
  destroy_executable = CU(cuGraphExecDestroy);
  graphs[0] = capture(1);
  graphs[1] = capture(2);
  executable = instantiate(graphs[0]);
  measure("graph-launch", "nsPerGraph", launch_once);
  measure("graph-launch+synchronize", "nsPerGraph", launch_and_wait);
  measure("graph-capture+instantiate", "nsPerGraph", capture_and_instantiate);
  measure("graph-capture", "nsPerGraph", capture_alone);
  measure("graph-update", "nsPerGraph", update);
  measure("launch-after-capture", "nsPerLaunch", launch_kernel_once);
  return 0;
}
