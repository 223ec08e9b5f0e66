package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.EventCalls;
import io.cuvette.instrument.internal.order.Clock;
import io.cuvette.instrument.internal.order.EventMark;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.order.Turn;
import io.cuvette.instrument.internal.report.CallTrace;

/** The part of the sanitizer that watches events. Thread-safe. */
public final class SanitizerEvents implements EventCalls {
  private static final int INTERPROCESS = 4;

  private final EventCalls calls;
  private final SanitizerCore core;

  public SanitizerEvents(CudaDriver driver, SanitizerCore core) {
    this.calls = driver.events();
    this.core = core;
  }

  @Override
  public long eventCreate(int device, int flags) {
    CallTrace site = CallTrace.of("eventCreate", "device", device, "flags", flags);
    long event = calls.eventCreate(device, flags);
    core.check(
        _ -> core.streams.events.add(event, new EventMark((flags & INTERPROCESS) != 0), site));
    return event;
  }

  @Override
  public void eventDestroy(int device, long event) {
    CallTrace site = CallTrace.of("eventDestroy", "device", device, "event", event);
    core.shown.remove(event);
    core.destroy(core.streams.events, event, site, () -> calls.eventDestroy(device, event));
  }

  @Override
  public void eventRecord(int device, long event, long stream) {
    CallTrace site =
        CallTrace.passing("eventRecord", "device", device, "event", event, "stream", stream);
    Lane lane = core.locked(findings -> core.streams.lane(device, stream, site, findings));
    EventMark mark = core.locked(findings -> core.streams.events.use(event, site, findings));
    Turn turn = core.turn(lane);
    Clock work = core.locked(_ -> turn.work());
    calls.eventRecord(device, event, stream);
    if (lane != null && mark != null) {
      core.check(_ -> core.streams.record(mark, lane, work));
    }
    core.check(_ -> turn.take());
  }

  @Override
  public boolean eventQuery(int device, long event) {
    Clock work = core.workBefore("eventQuery", event);
    boolean done = core.finishIf(calls.eventQuery(device, event), work);
    core.askForShown();
    return done;
  }

  @Override
  public void eventSynchronize(int device, long event) {
    Clock work = core.workBefore("eventSynchronize", event);
    calls.eventSynchronize(device, event);
    core.finish(work);
    core.askForShown();
  }

  @Override
  public float eventElapsedTime(int device, long start, long end) {
    Clock first = core.workBefore("eventElapsedTime", start);
    Clock last = core.workBefore("eventElapsedTime", end);
    float millis = calls.eventElapsedTime(device, start, end);
    core.finish(first);
    core.finish(last);
    return millis;
  }
}
