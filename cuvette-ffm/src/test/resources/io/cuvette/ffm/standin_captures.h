/* Part of standin_libcuda.c: captures, graphs and the objects that they retain. */

static struct capture *captures[64];

/*
 * Whether a capture forbids this thread what could be unsafe; the capture is invalid then. Waiting for a whole
 * device is forbidden in every mode of the thread.
 */
static int disturbs(int whole_device) {
  int found = 0;
  for (int i = 0; i < 64; i++) {
    struct capture *one = captures[i];
    if (!one) continue;
    int mine = pthread_equal(one->thread, pthread_self());
    int forbids = capture_mode == 2 ? 0 : mine ? one->mode != 2 : one->mode == 0 && capture_mode == 0;
    if (forbids || whole_device) one->invalid = found = 1;
  }
  return found;
}
/* Whether the state of a stream may be asked; if it is capturing, that spoils its capture. */
static int may_ask(struct stream *stream) {
  if (stream->capture) stream->capture->invalid = 1;
  return !stream->capture && !disturbs(0);
}
static CUresult cuThreadExchangeStreamCaptureMode_v10010(CUstreamCaptureMode *mode) {
  int before = capture_mode;
  capture_mode = (int)*mode;
  *mode = (CUstreamCaptureMode)before;
  return 0;
}
static CUresult cuStreamBeginCapture_v10010(CUstream handle, CUstreamCaptureMode mode) {
  STREAM_OF(stream, handle);
  int i = 0;
  while (i < 64 && captures[i]) i++;
  if ((int)mode > 2) RETURN(INVALID_VALUE);
  if (stream->capture) RETURN(ILLEGAL_STATE);
  if (stream->legacy || i == 64) RETURN(CAPTURE_UNSUPPORTED);
  struct capture *made = calloc(1, sizeof *made);
  struct graph *graph = calloc(1, sizeof *graph);
  graph->handle = new_handle(GRAPH, graph);
  *made = (struct capture){stream, (int)mode, 0, pthread_self(), ids++, graph};
  stream->capture = captures[i] = made;
  RETURN(0);
}
static void drop_ops(struct op *op) {
  for (struct op *next; op; op = next) {
    next = op->next;
    free(op->after);
    free(op->staged);
    free(op);
  }
}
static void *destroy_object(void *argument) {
  struct object *object = argument;
  object->destroy(object->data);
  free(object);
  return NULL;
}
static void release_object(struct object *object, unsigned count) {
  pthread_t thread;
  object->count -= count;
  if (!object->count) slot(object->handle, OBJECT)->object = NULL;
  if (!object->count && pthread_create(&thread, NULL, destroy_object, object) == 0) pthread_detach(thread);
}
static void drop_graph(struct graph *graph) {
  drop_ops(graph->first);
  for (struct retained *one = graph->objects, *next; one; one = next) {
    next = one->next;
    release_object(one->object, one->count);
    free(one);
  }
  free(graph);
}
/* Gives the graph, if there is one. Events may still name the capture, which is not freed. */
static CUgraph end_capture(struct capture *ended) {
  for (struct stream *other = streams; other; other = other->next)
    if (other->capture == ended) other->capture = NULL;
  for (int i = 0; i < 64; i++) if (captures[i] == ended) captures[i] = NULL;
  if (!ended->invalid) return ended->graph->handle;
  slot(ended->graph->handle, GRAPH)->object = NULL;
  drop_graph(ended->graph);
  return NULL;
}
/* A destroyed stream leaves its capture, which is worth nothing then. */
static void leave_capture(struct stream *stream) {
  if (!stream->capture) return;
  stream->capture->invalid = 1;
  if (stream->capture->origin == stream) end_capture(stream->capture); else stream->capture = NULL;
}
static void end_stream(struct stream *stream) {
  leave_capture(stream);
  live_streams--;
  stream->dead = 1;
  pthread_cond_signal(&stream->work);
}
static CUresult cuStreamEndCapture_v10000(CUstream handle, CUgraph *out) {
  STREAM_OF(stream, handle);
  *out = NULL;
  if (!stream->capture) RETURN(ILLEGAL_STATE);
  if (stream->capture->origin != stream) RETURN(CAPTURE_UNSUPPORTED);
  *out = end_capture(stream->capture);
  RETURN(*out ? 0 : CAPTURE_INVALIDATED);
}
static CUresult cuStreamIsCapturing_v10000(CUstream handle, CUstreamCaptureStatus *out) {
  STREAM_OF(stream, handle);
  for (struct stream *other = streams; stream->legacy && other; other = other->next)
    if (other->device == stream->device && other->capture && !(other->flags & 1)) RETURN(CAPTURE_IMPLICIT);
  *out = (CUstreamCaptureStatus)(!stream->capture ? 0 : stream->capture->invalid ? 2 : 1);
  RETURN(0);
}
static CUresult cuStreamGetCaptureInfo_v11030(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                                              CUgraph *graph, const CUgraphNode **nodes, size_t *count) {
  STREAM_OF(stream, handle);
  struct capture *capture = stream->capture;
  *status = (CUstreamCaptureStatus)(!capture ? 0 : capture->invalid ? 2 : 1);
  if (capture && id) *id = capture->id;
  if (capture && graph) *graph = capture->graph->handle;
  if (nodes) *nodes = NULL;
  if (count) *count = 0;
  RETURN(0);
}
static CUresult cuUserObjectCreate_v11030(CUuserObject *out, void *data, CUhostFn destroy, unsigned count,
                                          unsigned flags) {
  if (flags != 1 || !count) return INVALID_VALUE;
  CALL;
  struct object *made = malloc(sizeof *made);
  *made = (struct object){NULL, data, destroy, count};
  *out = made->handle = new_handle(OBJECT, made);
  RETURN(0);
}
static CUresult cuUserObjectRelease_v11030(CUuserObject handle, unsigned count) {
  CALL;
  OBJECT_OF(object, object, handle, OBJECT);
  release_object(object, count);
  RETURN(0);
}
/* Flag 1 moves the references of the caller. */
static CUresult cuGraphRetainUserObject_v11030(CUgraph handle, CUuserObject object_handle, unsigned count,
                                               unsigned flags) {
  CALL;
  OBJECT_OF(graph, graph, handle, GRAPH);
  OBJECT_OF(object, object, object_handle, OBJECT);
  struct retained *made = malloc(sizeof *made);
  *made = (struct retained){object, count, graph->objects};
  graph->objects = made;
  if (flags != 1) object->count += count;
  RETURN(0);
}
static CUresult cuGraphDestroy_v10000(CUgraph handle) {
  CALL;
  OBJECT_OF(graph, graph, handle, GRAPH);
  slot(handle, GRAPH)->object = NULL;
  drop_graph(graph);
  RETURN(0);
}
static struct op *copy_ops(const struct op *from) {
  struct op *first = NULL, *last = NULL;
  for (; from; from = from->next) {
    struct op *op = malloc(sizeof *op);
    *op = *from;
    op->next = NULL;
    op->event = NULL;
    op->after = NULL;
    op->waits = 0;
    if (from->staged) {
      op->from = op->staged = malloc(from->bytes);
      memcpy(op->staged, from->staged, from->bytes);
    }
    append(&first, &last, op);
  }
  return first;
}
/* An executable graph is a graph of its own, with the same work and objects. */
static CUresult cuGraphInstantiateWithParams_v12000(CUgraphExec *out, CUgraph handle,
                                                    CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  params->result_out = 0;
  CALL;
  OBJECT_OF(graph, graph, handle, GRAPH);
  struct graph *made = calloc(1, sizeof *made);
  made->first = copy_ops(graph->first);
  for (struct retained *one = graph->objects; one; one = one->next) {
    struct retained *kept = malloc(sizeof *kept);
    *kept = (struct retained){one->object, one->count, made->objects};
    made->objects = kept;
    one->object->count += one->count;
  }
  *out = new_handle(EXEC, made);
  RETURN(0);
}
static CUresult cuGraphLaunch_v10000(CUgraphExec handle, CUstream on) {
  STREAM_OF(stream, on);
  OBJECT_OF(graph, graph, handle, EXEC);
  for (struct op *op = copy_ops(graph->first), *next; op; op = next) {
    next = op->next;
    queue(stream, *op);
    free(op);
  }
  RETURN(0);
}
static CUresult cuGraphExecDestroy_v10000(CUgraphExec handle) {
  CALL;
  OBJECT_OF(graph, graph, handle, EXEC);
  slot(handle, EXEC)->object = NULL;
  drop_graph(graph);
  RETURN(0);
}

#define CAPTURE_FORMS(X) \
  X(cuThreadExchangeStreamCaptureMode, 10010) X(cuStreamBeginCapture, 10010) X(cuStreamEndCapture, 10000) \
  X(cuStreamIsCapturing, 10000) X(cuStreamGetCaptureInfo, 11030) X(cuUserObjectCreate, 11030) \
  X(cuUserObjectRelease, 11030) X(cuGraphRetainUserObject, 11030) X(cuGraphDestroy, 10000) \
  X(cuGraphInstantiateWithParams, 12000) X(cuGraphLaunch, 10000) X(cuGraphExecDestroy, 10000)
