package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.EnumSet;
import java.util.Set;

/** The part of the sanitizer that watches streams, events and captures. Thread-safe. */
final class SanitizerStreams {
  /** Errors that end a capture without a graph; after any other it goes on. */
  private static final Set<CudaStatus> ENDED_IN_VAIN =
      EnumSet.of(CudaStatus.STREAM_CAPTURE_INVALIDATED, CudaStatus.STREAM_CAPTURE_UNJOINED);

  private static final int INTERPROCESS = 4;

  private final CudaDriver driver;
  private final SanitizerCore core;

  SanitizerStreams(CudaDriver driver, SanitizerCore core) {
    this.driver = driver;
    this.core = core;
  }

  public long streamCreateWithPriority(int device, int flags, int priority) {
    Site site =
        Site.of("streamCreateWithPriority", "device", device, "flags", flags, "priority", priority);
    long stream = driver.streams().streamCreateWithPriority(device, flags, priority);
    core.check(_ -> core.streams.create(device, stream, flags == 0, site));
    return stream;
  }

  public void streamDestroy(int device, long stream) {
    Site site = Site.of("streamDestroy", "device", device, "stream", stream);
    Lane lane =
        core.destroy(
            core.streams.streams,
            stream,
            site,
            () -> driver.streams().streamDestroy(device, stream));
    if (lane != null) {
      core.check(_ -> core.streams.order.destroy(lane));
    }
  }

  public int streamGetPriority(int device, long stream) {
    core.lane("streamGetPriority", device, stream);
    return driver.streams().streamGetPriority(device, stream);
  }

  public int streamGetFlags(int device, long stream) {
    core.lane("streamGetFlags", device, stream);
    return driver.streams().streamGetFlags(device, stream);
  }

  public long streamGetId(int device, long stream) {
    core.lane("streamGetId", device, stream);
    return driver.streams().streamGetId(device, stream);
  }

  public int streamGetDevice(int device, long stream) {
    core.lane("streamGetDevice", device, stream);
    return driver.streams().streamGetDevice(device, stream);
  }

  public boolean streamQuery(int device, long stream) {
    Clock work = core.workOf("streamQuery", device, stream);
    return core.finishIf(driver.streams().streamQuery(device, stream), work);
  }

  public void streamSynchronize(int device, long stream) {
    Clock work = core.workOf("streamSynchronize", device, stream);
    driver.streams().streamSynchronize(device, stream);
    core.finish(work);
  }

  public void streamWaitEvent(int device, long stream, long event) {
    Site site = Site.passing("streamWaitEvent", "device", device, "stream", stream, "event", event);
    Lane lane = core.locked(findings -> core.streams.lane(device, stream, site, findings));
    EventMark mark = core.locked(findings -> core.streams.events.use(event, site, findings));
    driver.streams().streamWaitEvent(device, stream, event);
    if (lane != null) {
      core.check(_ -> core.streams.await(lane, mark));
    }
  }

  public void ctxSynchronize(int device) {
    Clock work = core.locked(_ -> core.streams.order.everythingOn(device));
    driver.devices().ctxSynchronize(device);
    core.finish(work);
  }

  public void launchHostFunc(int device, long stream, Runnable function) {
    Clock before = core.workOf("launchHostFunc", device, stream);
    Runnable announced =
        () -> {
          core.finish(before);
          function.run();
        };
    core.unseen(core.lane("launchHostFunc", device, stream), site("launchHostFunc", stream));
    driver.streams().launchHostFunc(device, stream, announced);
  }

  public void streamWaitValue32(int device, long stream, long address, int value, int flags) {
    Lane lane = core.lane("streamWaitValue32", device, stream);
    core.unseen(lane, site("streamWaitValue32", stream));
    driver.streams().streamWaitValue32(device, stream, address, value, flags);
  }

  public long eventCreate(int device, int flags) {
    Site site = Site.of("eventCreate", "device", device, "flags", flags);
    long event = driver.events().eventCreate(device, flags);
    core.check(
        _ -> core.streams.events.add(event, new EventMark((flags & INTERPROCESS) != 0), site));
    return event;
  }

  public void eventDestroy(int device, long event) {
    Site site = Site.of("eventDestroy", "device", device, "event", event);
    core.destroy(
        core.streams.events, event, site, () -> driver.events().eventDestroy(device, event));
  }

  public void eventRecord(int device, long event, long stream) {
    Site site = Site.passing("eventRecord", "device", device, "event", event, "stream", stream);
    Lane lane = core.locked(findings -> core.streams.lane(device, stream, site, findings));
    EventMark mark = core.locked(findings -> core.streams.events.use(event, site, findings));
    driver.events().eventRecord(device, event, stream);
    if (lane != null && mark != null) {
      core.check(_ -> core.streams.record(mark, lane));
    }
  }

  public boolean eventQuery(int device, long event) {
    Clock work = core.workBefore("eventQuery", event);
    return core.finishIf(driver.events().eventQuery(device, event), work);
  }

  public void eventSynchronize(int device, long event) {
    Clock work = core.workBefore("eventSynchronize", event);
    driver.events().eventSynchronize(device, event);
    core.finish(work);
  }

  public float eventElapsedTime(int device, long start, long end) {
    Clock first = core.workBefore("eventElapsedTime", start);
    Clock last = core.workBefore("eventElapsedTime", end);
    float millis = driver.events().eventElapsedTime(device, start, end);
    core.finish(first);
    core.finish(last);
    return millis;
  }

  public void streamBeginCapture(int device, long stream, int mode) {
    Lane lane = core.lane("streamBeginCapture", device, stream);
    driver.captures().streamBeginCapture(device, stream, mode);
    core.check(_ -> core.streams.beginCapture(lane));
  }

  public long streamEndCapture(int device, long stream) {
    Site site = Site.of("streamEndCapture", "device", device, "stream", stream);
    Lane lane = core.locked(findings -> core.streams.lane(device, stream, site, findings));
    try {
      long graph = driver.captures().streamEndCapture(device, stream);
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

  public int streamIsCapturing(int device, long stream) {
    Lane lane = core.lane("streamIsCapturing", device, stream);
    int status = driver.captures().streamIsCapturing(device, stream);
    if (status == 0) {
      core.check(_ -> core.streams.endCapture(lane));
    }
    return status;
  }

  public void graphLaunch(int device, long executable, long stream) {
    core.check(_ -> core.memory.hostReads.clear());
    core.unseen(core.lane("graphLaunch", device, stream), site("graphLaunch", stream));
    driver.captures().graphLaunch(device, executable, stream);
  }

  private static Site site(String method, long stream) {
    return Site.passing(method, "stream", stream);
  }

  public void graphDestroy(long graph) {
    Site site = Site.of("graphDestroy", "graph", graph);
    core.destroy(core.streams.graphs, graph, site, () -> driver.captures().graphDestroy(graph));
  }
}
