package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.EnumSet;
import java.util.Set;

/** The part of the sanitizer that watches streams, events and captures. Thread-safe. */
abstract class SanitizerStreams extends ForwardingDriver {
  /** Errors that end a capture without a graph; after any other it goes on. */
  private static final Set<CudaStatus> ENDED_IN_VAIN =
      EnumSet.of(CudaStatus.STREAM_CAPTURE_INVALIDATED, CudaStatus.STREAM_CAPTURE_UNJOINED);

  private static final int INTERPROCESS = 4;

  final SanitizerCore core;

  SanitizerStreams(CudaDriver target, SanitizerCore core) {
    super(target);
    this.core = core;
  }

  @Override
  public long streamCreateWithPriority(int device, int flags, int priority) {
    Site site =
        Site.of("streamCreateWithPriority", "device", device, "flags", flags, "priority", priority);
    long stream = super.streamCreateWithPriority(device, flags, priority);
    core.check(_ -> core.streams.create(device, stream, flags == 0, site));
    return stream;
  }

  @Override
  public void streamDestroy(int device, long stream) {
    Site site = Site.of("streamDestroy", "device", device, "stream", stream);
    Lane lane =
        core.destroy(core.streams.streams, stream, site, () -> super.streamDestroy(device, stream));
    if (lane != null) {
      core.check(_ -> core.streams.order.destroy(lane));
    }
  }

  @Override
  public int streamGetPriority(int device, long stream) {
    core.lane("streamGetPriority", device, stream);
    return super.streamGetPriority(device, stream);
  }

  @Override
  public int streamGetFlags(int device, long stream) {
    core.lane("streamGetFlags", device, stream);
    return super.streamGetFlags(device, stream);
  }

  @Override
  public long streamGetId(int device, long stream) {
    core.lane("streamGetId", device, stream);
    return super.streamGetId(device, stream);
  }

  @Override
  public int streamGetDevice(int device, long stream) {
    core.lane("streamGetDevice", device, stream);
    return super.streamGetDevice(device, stream);
  }

  @Override
  public boolean streamQuery(int device, long stream) {
    Clock work = core.workOf("streamQuery", device, stream);
    return core.finishIf(super.streamQuery(device, stream), work);
  }

  @Override
  public void streamSynchronize(int device, long stream) {
    Clock work = core.workOf("streamSynchronize", device, stream);
    super.streamSynchronize(device, stream);
    core.finish(work);
  }

  @Override
  public void streamWaitEvent(int device, long stream, long event) {
    Site site = Site.passing("streamWaitEvent", "device", device, "stream", stream, "event", event);
    Lane lane = core.locked(findings -> core.streams.lane(device, stream, site, findings));
    EventMark mark = core.locked(findings -> core.streams.events.use(event, site, findings));
    super.streamWaitEvent(device, stream, event);
    if (lane != null) {
      core.check(_ -> core.streams.await(lane, mark));
    }
  }

  @Override
  public void ctxSynchronize(int device) {
    Clock work = core.locked(_ -> core.streams.order.everythingOn(device));
    super.ctxSynchronize(device);
    core.finish(work);
  }

  @Override
  public void launchHostFunc(int device, long stream, Runnable function) {
    Clock before = core.workOf("launchHostFunc", device, stream);
    Runnable announced =
        () -> {
          core.finish(before);
          function.run();
        };
    core.unseen(core.lane("launchHostFunc", device, stream), site("launchHostFunc", stream));
    super.launchHostFunc(device, stream, announced);
  }

  @Override
  public void streamWaitValue32(int device, long stream, long address, int value, int flags) {
    Lane lane = core.lane("streamWaitValue32", device, stream);
    core.unseen(lane, site("streamWaitValue32", stream));
    super.streamWaitValue32(device, stream, address, value, flags);
  }

  @Override
  public long eventCreate(int device, int flags) {
    Site site = Site.of("eventCreate", "device", device, "flags", flags);
    long event = super.eventCreate(device, flags);
    core.check(
        _ -> core.streams.events.add(event, new EventMark((flags & INTERPROCESS) != 0), site));
    return event;
  }

  @Override
  public void eventDestroy(int device, long event) {
    Site site = Site.of("eventDestroy", "device", device, "event", event);
    core.destroy(core.streams.events, event, site, () -> super.eventDestroy(device, event));
  }

  @Override
  public void eventRecord(int device, long event, long stream) {
    Site site = Site.passing("eventRecord", "device", device, "event", event, "stream", stream);
    Lane lane = core.locked(findings -> core.streams.lane(device, stream, site, findings));
    EventMark mark = core.locked(findings -> core.streams.events.use(event, site, findings));
    super.eventRecord(device, event, stream);
    if (lane != null && mark != null) {
      core.check(_ -> core.streams.record(mark, lane));
    }
  }

  @Override
  public boolean eventQuery(int device, long event) {
    Clock work = core.workBefore("eventQuery", event);
    return core.finishIf(super.eventQuery(device, event), work);
  }

  @Override
  public void eventSynchronize(int device, long event) {
    Clock work = core.workBefore("eventSynchronize", event);
    super.eventSynchronize(device, event);
    core.finish(work);
  }

  @Override
  public float eventElapsedTime(int device, long start, long end) {
    Clock first = core.workBefore("eventElapsedTime", start);
    Clock last = core.workBefore("eventElapsedTime", end);
    float millis = super.eventElapsedTime(device, start, end);
    core.finish(first);
    core.finish(last);
    return millis;
  }

  @Override
  public void streamBeginCapture(int device, long stream, int mode) {
    Lane lane = core.lane("streamBeginCapture", device, stream);
    super.streamBeginCapture(device, stream, mode);
    core.check(_ -> core.streams.beginCapture(lane));
  }

  @Override
  public long streamEndCapture(int device, long stream) {
    Site site = Site.of("streamEndCapture", "device", device, "stream", stream);
    Lane lane = core.locked(findings -> core.streams.lane(device, stream, site, findings));
    try {
      long graph = super.streamEndCapture(device, stream);
      core.check(_ -> core.streams.endCapture(lane));
      core.check(_ -> core.streams.graphs.add(graph, true, site));
      return graph;
    } catch (CudaException e) {
      if (ENDED_IN_VAIN.contains(e.status())) {
        core.check(_ -> core.streams.endCapture(lane));
      }
      throw e;
    }
  }

  @Override
  public int streamIsCapturing(int device, long stream) {
    Lane lane = core.lane("streamIsCapturing", device, stream);
    int status = super.streamIsCapturing(device, stream);
    if (status == 0) {
      core.check(_ -> core.streams.endCapture(lane));
    }
    return status;
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    core.check(_ -> core.memory.hostReads.clear());
    core.unseen(core.lane("graphLaunch", device, stream), site("graphLaunch", stream));
    super.graphLaunch(device, executable, stream);
  }

  private static Site site(String method, long stream) {
    return Site.passing(method, "stream", stream);
  }

  @Override
  public void graphDestroy(long graph) {
    Site site = Site.of("graphDestroy", "graph", graph);
    core.destroy(core.streams.graphs, graph, site, () -> super.graphDestroy(graph));
  }
}
