/* Part of standin_libcuda.c: copies, fills, streams, events and functions of the host. */

#define AT(address) ((void *)(uintptr_t)(address))

static CUresult copy(CUstream handle, void *to, const void *from, size_t bytes) {
  STREAM_OF(stream, handle);
  await_room(stream);
  queue(stream, (struct op){.kind = COPY, .to = to, .from = from, .bytes = bytes});
  RETURN(0);
}
static CUresult cuMemcpyAsync_v4000(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle) {
  return copy(handle, AT(to), AT(from), bytes);
}
static CUresult cuMemcpyPeerAsync_v4000(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                        CUcontext from_context, size_t bytes, CUstream handle) {
  (void)to_context, (void)from_context;
  return copy(handle, AT(to), AT(from), bytes);
}
static CUresult cuMemcpy3DAsync_v3020(const CUDA_MEMCPY3D *p, CUstream handle) {
  if ((int)p->srcMemoryType != UNIFIED || (int)p->dstMemoryType != UNIFIED) return NOT_SUPPORTED;
  if (p->srcPitch < p->WidthInBytes || p->dstPitch < p->WidthInBytes || p->srcHeight < p->Height
      || p->dstHeight < p->Height) return INVALID_VALUE;
  STREAM_OF(stream, handle);
  await_room(stream);
  for (size_t layer = 0; layer < p->Depth; layer++)
    for (size_t row = 0; row < p->Height; row++)
      queue(stream, (struct op){.kind = COPY, .bytes = p->WidthInBytes,
            .to = AT(p->dstDevice + (layer * p->dstHeight + row) * p->dstPitch),
            .from = AT(p->srcDevice + (layer * p->srcHeight + row) * p->srcPitch)});
  RETURN(0);
}
/* All of a batch is checked before any is queued. */
static CUresult cuMemcpyBatchAsync_v13000(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
    CUmemcpyAttributes *attributes, size_t *first, size_t kinds, CUstream handle) {
  if (U(handle) <= LEGACY || !count || kinds != 1 || *first || (int)attributes->srcAccessOrder != 1) return INVALID_VALUE;
  for (size_t i = 0; i < count; i++) if (!bytes[i]) return INVALID_VALUE;
  STREAM_OF(stream, handle);
  if (stream->capture) RETURN(CAPTURE_UNSUPPORTED);
  await_room(stream);
  for (size_t i = 0; i < count; i++)
    queue(stream, (struct op){.kind = COPY, .to = AT(to[i]), .from = AT(from[i]), .bytes = bytes[i]});
  RETURN(0);
}
/* From memory that the driver does not know the bytes are taken before the call returns. */
static CUresult cuMemcpyHtoDAsync_v3020(CUdeviceptr to, const void *from, size_t bytes, CUstream handle) {
  CALL;
  int ours = is_ours(from);
  pthread_mutex_unlock(&lock);
  if (ours) return copy(handle, AT(to), from, bytes);
  void *staged = malloc(bytes ? bytes : 1);
  memcpy(staged, from, bytes);
  STREAM_OF(stream, handle);
  await_room(stream);
  queue(stream, (struct op){.kind = COPY, .to = AT(to), .from = staged, .bytes = bytes, .staged = staged});
  RETURN(0);
}
/* To such memory they are brought before it returns. */
static CUresult cuMemcpyDtoHAsync_v3020(void *to, CUdeviceptr from, size_t bytes, CUstream handle) {
  STREAM_OF(stream, handle);
  await_room(stream);
  int ours = is_ours(to);
  if (!ours && stream->capture) RETURN(CAPTURE_UNSUPPORTED);
  uint64_t seq = queue(stream, (struct op){.kind = COPY, .to = to, .from = AT(from), .bytes = bytes});
  if (!ours) await(stream, seq);
  RETURN(0);
}
static CUresult fill(CUstream handle, CUdeviceptr to, unsigned value, size_t count, int width) {
  STREAM_OF(stream, handle);
  await_room(stream);
  queue(stream, (struct op){.kind = FILL, .to = AT(to), .value = value, .bytes = count, .width = width});
  RETURN(0);
}
static CUresult cuMemsetD8Async_v3020(CUdeviceptr to, unsigned char value, size_t count, CUstream handle) {
  return fill(handle, to, value, count, 1);
}
static CUresult cuMemsetD16Async_v3020(CUdeviceptr to, unsigned short value, size_t count, CUstream handle) {
  return to % 2 ? INVALID_VALUE : fill(handle, to, value, count, 2);
}
static CUresult cuMemsetD32Async_v3020(CUdeviceptr to, unsigned value, size_t count, CUstream handle) {
  return to % 4 ? INVALID_VALUE : fill(handle, to, value, count, 4);
}

/* streams */
static CUresult cuStreamCreateWithPriority_v5050(CUstream *out, unsigned flags, int priority) {
  CONTEXT;
  if (flags > 1) RETURN(INVALID_VALUE);
  struct stream *made = new_stream(current - 1, (int)flags, priority > 0 ? 0 : priority < -5 ? -5 : priority, 0);
  *out = made->handle = new_handle(STREAM, made);
  live_streams++;
  RETURN(0);
}
/* Its work still runs; its thread and it go with the last of it. */
static CUresult cuStreamDestroy_v4000(CUstream handle) {
  CALL;
  OBJECT_OF(stream, stream, handle, STREAM);
  slot(handle, STREAM)->object = NULL;
  end_stream(stream);
  RETURN(0);
}
static CUresult cuStreamGetPriority_v5050(CUstream handle, int *out) {
  STREAM_OF(stream, handle);
  *out = stream->priority;
  RETURN(0);
}
static CUresult cuStreamGetFlags_v5050(CUstream handle, unsigned *out) {
  STREAM_OF(stream, handle);
  *out = (unsigned)stream->flags;
  RETURN(0);
}
static CUresult cuStreamGetId_v12000(CUstream handle, unsigned long long *out) {
  STREAM_OF(stream, handle);
  *out = stream->id;
  RETURN(0);
}
static CUresult cuStreamGetDevice_v12080(CUstream handle, CUdevice *out) {
  STREAM_OF(stream, handle);
  *out = stream->device;
  RETURN(0);
}
/* The legacy stream stands for all streams that it waits for. */
static int is_done(struct stream *stream) {
  if (stream->done < stream->queued) return 0;
  for (struct stream *other = streams; stream->legacy && other; other = other->next)
    if (other->device == stream->device && !(other->flags & 1) && other->done < other->queued) return 0;
  return 1;
}
static CUresult cuStreamQuery_v2000(CUstream handle) {
  STREAM_OF(stream, handle);
  if (!may_ask(stream)) RETURN(CAPTURE_UNSUPPORTED);
  RETURN(is_done(stream) ? 0 : NOT_READY);
}
static CUresult cuStreamSynchronize_v2000(CUstream handle) {
  STREAM_OF(stream, handle);
  if (!may_ask(stream)) RETURN(CAPTURE_UNSUPPORTED);
  await(stream, stream->legacy ? queue(stream, (struct op){.kind = MARK}) : stream->queued);
  RETURN(0);
}
static CUresult cuLaunchHostFunc_v10000(CUstream handle, CUhostFn function, void *data) {
  STREAM_OF(stream, handle);
  queue(stream, (struct op){.kind = HOST, .function = function, .to = data});
  RETURN(0);
}
static CUresult cuStreamWaitValue32_v11070(CUstream handle, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  STREAM_OF(stream, handle);
  if (flags) RETURN(NOT_SUPPORTED);
  queue(stream, (struct op){.kind = WAIT_VALUE, .to = AT(at), .value = value});
  RETURN(0);
}
static CUresult cuStreamWriteValue32_v11070(CUstream handle, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  STREAM_OF(stream, handle);
  if (flags) RETURN(NOT_SUPPORTED);
  queue(stream, (struct op){.kind = WRITE_VALUE, .to = AT(at), .value = value});
  RETURN(0);
}

/* events */
static CUresult cuEventCreate_v2000(CUevent *out, unsigned flags) {
  CONTEXT;
  if (flags > 7 || (flags & 6) == 4) RETURN(INVALID_VALUE);
  struct event *made = calloc(1, sizeof *made);
  made->device = current - 1;
  made->flags = (int)flags;
  *out = new_handle(EVENT, made);
  live_events++;
  RETURN(0);
}
static CUresult cuEventDestroy_v4000(CUevent handle) {
  CALL;
  OBJECT_OF(event, event, handle, EVENT);
  slot(handle, EVENT)->object = NULL; /* a record of it may be under way: it is not freed */
  event->dead = 1;
  live_events--;
  RETURN(0);
}
static CUresult cuEventRecord_v2000(CUevent handle, CUstream on) {
  STREAM_OF(stream, on);
  OBJECT_OF(event, event, handle, EVENT);
  if (event->device != stream->device) RETURN(INVALID_HANDLE);
  event->capture = stream->capture;
  event->stream = stream;
  event->seq = stream->capture ? 0 : stream->queued + 1;
  queue(stream, (struct op){.kind = MARK, .event = event});
  RETURN(0);
}
static CUresult cuEventQuery_v2000(CUevent handle) {
  CALL;
  OBJECT_OF(event, event, handle, EVENT);
  if (event->capture || disturbs(0)) RETURN(CAPTURE_UNSUPPORTED);
  RETURN(!event->stream || event->stream->done >= event->seq ? 0 : NOT_READY);
}
static CUresult cuEventSynchronize_v2000(CUevent handle) {
  CALL;
  OBJECT_OF(event, event, handle, EVENT);
  if (event->capture || disturbs(0)) RETURN(CAPTURE_UNSUPPORTED);
  if (event->stream) await(event->stream, event->seq);
  RETURN(0);
}
static CUresult cuEventElapsedTime_v12080(float *out, CUevent start_handle, CUevent end_handle) {
  CALL;
  OBJECT_OF(event, from, start_handle, EVENT);
  OBJECT_OF(event, to, end_handle, EVENT);
  if (from->device != to->device || !from->stream || !to->stream || (from->flags & 2) || (to->flags & 2)) RETURN(INVALID_HANDLE);
  if (from->stream->done < from->seq || to->stream->done < to->seq) RETURN(NOT_READY);
  *out = (float)(to->millis - from->millis);
  RETURN(0);
}
static CUresult cuStreamWaitEvent_v3020(CUstream handle, CUevent on, unsigned flags) {
  (void)flags;
  STREAM_OF(stream, handle);
  OBJECT_OF(event, event, on, EVENT);
  if (event->capture) stream->capture = event->capture; /* it joins the capture */
  if (event->capture || !event->stream) RETURN(0);
  struct op op = {.kind = MARK};
  depend(&op, event->stream, event->seq);
  queue(stream, op);
  RETURN(0);
}

#define STREAM_FORMS(X) \
  X(cuMemcpyAsync, 4000) X(cuMemcpyPeerAsync, 4000) X(cuMemcpyHtoDAsync, 3020) X(cuMemcpyDtoHAsync, 3020) \
  X(cuMemcpy3DAsync, 3020) X(cuMemcpyBatchAsync, 13000) \
  X(cuMemsetD8Async, 3020) X(cuMemsetD16Async, 3020) X(cuMemsetD32Async, 3020) \
  X(cuStreamCreateWithPriority, 5050) X(cuStreamDestroy, 4000) X(cuStreamGetPriority, 5050) \
  X(cuStreamGetFlags, 5050) X(cuStreamGetId, 12000) X(cuStreamGetDevice, 12080) X(cuStreamQuery, 2000) \
  X(cuStreamSynchronize, 2000) X(cuStreamWaitEvent, 3020) X(cuLaunchHostFunc, 10000) \
  X(cuStreamWaitValue32, 11070) X(cuStreamWriteValue32, 11070) X(cuEventCreate, 2000) X(cuEventDestroy, 4000) \
  X(cuEventRecord, 2000) X(cuEventQuery, 2000) X(cuEventSynchronize, 2000) X(cuEventElapsedTime, 12080)
