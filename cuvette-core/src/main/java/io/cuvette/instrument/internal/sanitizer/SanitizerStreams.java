package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.internal.order.Clock;
import io.cuvette.instrument.internal.order.EventMark;
import io.cuvette.instrument.internal.order.HostFunction;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.order.Turn;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.List;

/** The part of the sanitizer that watches streams. Thread-safe. */
public final class SanitizerStreams implements StreamCalls {
  private final StreamCalls calls;
  private final SanitizerCore core;

  public SanitizerStreams(CudaDriver driver, SanitizerCore core) {
    this.calls = driver.streams();
    this.core = core;
  }

  @Override
  public long streamCreateWithPriority(int device, int flags, int priority) {
    CallTrace site =
        CallTrace.of(
            "streamCreateWithPriority", "device", device, "flags", flags, "priority", priority);
    long stream = calls.streamCreateWithPriority(device, flags, priority);
    core.check(_ -> core.streams.create(device, stream, flags == 0, site));
    return stream;
  }

  @Override
  public void streamDestroy(int device, long stream) {
    CallTrace site = CallTrace.of("streamDestroy", "device", device, "stream", stream);
    Lane lane =
        core.destroy(core.streams.streams, stream, site, () -> calls.streamDestroy(device, stream));
    if (lane != null) {
      core.check(_ -> core.streams.order.destroy(lane));
    }
  }

  @Override
  public int streamGetPriority(int device, long stream) {
    core.lane("streamGetPriority", device, stream);
    return calls.streamGetPriority(device, stream);
  }

  @Override
  public int streamGetFlags(int device, long stream) {
    core.lane("streamGetFlags", device, stream);
    return calls.streamGetFlags(device, stream);
  }

  @Override
  public long streamGetId(int device, long stream) {
    core.lane("streamGetId", device, stream);
    return calls.streamGetId(device, stream);
  }

  @Override
  public int streamGetDevice(int device, long stream) {
    core.lane("streamGetDevice", device, stream);
    return calls.streamGetDevice(device, stream);
  }

  @Override
  public boolean streamQuery(int device, long stream) {
    Clock work = core.workOf("streamQuery", device, stream);
    return core.finishIf(calls.streamQuery(device, stream), work);
  }

  @Override
  public void streamSynchronize(int device, long stream) {
    Clock work = core.workOf("streamSynchronize", device, stream);
    calls.streamSynchronize(device, stream);
    core.finish(work);
  }

  @Override
  public void streamWaitEvent(int device, long stream, long event) {
    CallTrace site =
        CallTrace.passing("streamWaitEvent", "device", device, "stream", stream, "event", event);
    Lane lane = core.locked(findings -> core.streams.lane(device, stream, site, findings));
    EventMark mark = core.locked(findings -> core.streams.events.use(event, site, findings));
    Turn turn = core.turn(lane);
    calls.streamWaitEvent(device, stream, event);
    core.check(_ -> turn.take());
    if (lane != null) {
      core.check(_ -> core.streams.await(lane, mark));
    }
  }

  @Override
  public void launchHostFunc(int device, long stream, Runnable function) {
    HostFunction told = new HostFunction(function, core::finishWithin);
    Lane lane = core.lane("launchHostFunc", device, stream);
    CallTrace site = CallTrace.passing("launchHostFunc", "stream", stream);
    Turn turn = core.turn(lane);
    Clock work = core.locked(_ -> turn.work());
    core.unseen(lane, site);
    core.launch(
        List.of(told),
        () -> calls.launchHostFunc(device, stream, told),
        _ -> {
          turn.take();
          if (lane == null || lane.capture() == null) { // else launches run it
            long _ = told.expect(0, work);
          }
          core.unseen(lane, site); // what is noted above may have counted as done meanwhile
          core.gate(lane, told::isPending);
        });
  }

  @Override
  public void streamWaitValue32(int device, long stream, long address, int value, int flags) {
    Lane lane = core.lane("streamWaitValue32", device, stream);
    Turn turn = core.turn(lane);
    core.unseen(lane, CallTrace.passing("streamWaitValue32", "stream", stream));
    calls.streamWaitValue32(device, stream, address, value, flags);
    core.check(_ -> turn.take());
    if (lane != null && lane.capture() == null) {
      core.check(_ -> core.memory.awaitWord(address, is -> isAwaited(is, value, flags), lane));
    }
  }

  /** CUstreamWaitValue_flags. */
  private static boolean isAwaited(int is, int value, int flags) {
    return switch (flags & 3) {
      case 0 -> is - value < 0;
      case 1 -> is != value;
      case 2 -> (is & value) == 0;
      default -> ~(is | value) == 0;
    };
  }
}
