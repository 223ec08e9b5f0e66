package io.cuvette.internal.stream;

import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.PriorityRange;
import io.cuvette.driver.StreamHandle;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.CaptureMemory;
import io.cuvette.internal.fence.Captures;
import io.cuvette.internal.fence.EndedStreams;
import io.cuvette.internal.fence.Fence;
import io.cuvette.internal.fence.OwnCapture;
import io.cuvette.internal.fence.Relief;
import io.cuvette.internal.fence.StreamLocal;
import io.cuvette.internal.fence.SyncListener;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.lifetime.HostViews;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ObjectEnding;
import io.cuvette.internal.session.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Function;

/** Streams of one {@link Session} by the identity that the driver never uses twice. Thread-safe. */
public final class Streams {
  private final Session session;
  private final SyncListener listener;
  private final Relief relief;
  private final Function<DriverStream, StreamLocal> locals;
  private final Captures captures;
  private final HostViews<UsedMemory> views = HostViews.create();
  private final List<DriverStream> nullStreams;
  private final List<DriverStream> legacyStreams;
  private final ConcurrentHashMap<Key, DriverStream> byId = new ConcurrentHashMap<>();

  /** The per-thread streams, of threads that were alive when last looked at. */
  private final Set<DriverStream> perThread = ConcurrentHashMap.newKeySet();

  private final EndedStreams ended = new EndedStreams();

  /** Streams that were closed while they took part in a capture. */
  private final ConcurrentLinkedQueue<DriverStream> captured = new ConcurrentLinkedQueue<>();

  /** What pools take for a stream in the place of one that captures. */
  private final ConcurrentHashMap<CaptureKey, DriverStream> ofCaptures = new ConcurrentHashMap<>();

  /** Memory that no pool keeps, closed while a graph could use it. */
  private final FreesAfterGraphs<UsedMemory> ofGraphs;

  private record Key(int device, long id) {}

  private record CaptureKey(CaptureMemory memory, Device device, int number) {}

  /**
   * Begins without streams but the built-in ones.
   *
   * @param ofGraphs releases memory that no pool keeps
   * @param locals makes what pools keep for a stream
   */
  public Streams(
      Session session,
      SyncListener listener,
      Relief relief,
      FreesAfterGraphs<UsedMemory> ofGraphs,
      Function<DriverStream, StreamLocal> locals) {
    this.session = session;
    this.listener = listener;
    this.relief = relief;
    this.ofGraphs = ofGraphs;
    this.locals = locals;
    this.captures = new Captures(session.driver());
    this.nullStreams = builtIn(StreamHandle.NULL);
    this.legacyStreams = builtIn(StreamHandle.LEGACY);
    session.whenDrained(this::poll);
  }

  private List<DriverStream> builtIn(long handle) {
    return session.devices().stream()
        .map(device -> DriverStream.foreign(this, device, handle))
        .toList();
  }

  public Session session() {
    return session;
  }

  /** What pools keep for a new stream. */
  public StreamLocal local(DriverStream of) {
    return locals.apply(of);
  }

  /** What is notified of waits. */
  public SyncListener listener() {
    return listener;
  }

  /** What pools release for each other. */
  public Relief relief() {
    return relief;
  }

  /** The captures that use memory. */
  public Captures captures() {
    return captures;
  }

  /** What users see memory of buffers through. */
  public HostViews<UsedMemory> views() {
    return views;
  }

  /** The null stream of a device, handle 0. */
  public DriverStream nullStream(Device device) {
    return nullStreams.get(device.id());
  }

  /** The null stream of a device under its own handle 1. */
  public DriverStream legacyStream(Device device) {
    return legacyStreams.get(device.id());
  }

  /**
   * Makes a stream (cuStreamCreateWithPriority), which ends with the result.
   *
   * @param maker makes what stands for the stream
   * @throws IllegalArgumentException if the priority is none of the device's
   */
  public <T> T create(Device device, StreamOptions options, Function<DriverStream, T> maker) {
    return session.gate().make(() -> open(device, options, maker, false));
  }

  /** A stream of the library's own, apart from the hardware queues that most streams share. */
  public <T> T createForLibrary(Device device, Function<DriverStream, T> maker) {
    StreamOptions options =
        StreamOptions.NON_BLOCKING.withPriority(device.priorityRange().greatest());
    return session.gate().make(() -> open(device, options, maker, true));
  }

  private <T> T open(
      Device device, StreamOptions options, Function<DriverStream, T> maker, boolean isOfLibrary) {
    PriorityRange range = device.priorityRange();
    if (!range.contains(options.priority())) {
      throw new IllegalArgumentException(
          "priority: %d (expected: %d, most urgent, to %d)"
              .formatted(options.priority(), range.greatest(), range.least()));
    }
    CudaDriver driver = device.context();
    long handle =
        driver
            .streams()
            .streamCreateWithPriority(
                device.id(), options.nonBlocking() ? 1 : 0, options.priority());
    ObjectEnding ending = null;
    try {
      DriverStream state = created(device, handle, !options.nonBlocking());
      T made = maker.apply(state);
      ending = state.endsWith(made);
      byId.put(new Key(device.id(), state.id), state); // complete
      if (isOfLibrary) {
        session.leaks().closed(ending);
      }
      return made;
    } catch (OutOfMemoryError e) {
      driver.streams().streamDestroy(device.id(), handle); // a child if that fails, perhaps
      if (ending != null) {
        ending.discard();
      }
      throw e;
    } catch (RuntimeException e) {
      Failures.runAfter(e, () -> driver.streams().streamDestroy(device.id(), handle));
      throw e;
    }
  }

  private DriverStream created(Device device, long handle, boolean blocking) {
    long id = session.driver().streams().streamGetId(device.id(), handle);
    DriverStream state = DriverStream.owned(this, device, handle, blocking);
    state.id = id;
    return state;
  }

  /** The streams that were closed before their work was done. */
  public EndedStreams ended() {
    return ended;
  }

  /** A stream that somebody else made, with one wrapper more. */
  public DriverStream wrap(Device device, long handle) {
    int of = device.ask(driver -> driver.streams().streamGetDevice(device.id(), handle));
    if (of != device.id()) {
      throw new IllegalArgumentException(
          "stream 0x%x belongs to device %d (expected: %s)".formatted(handle, of, device));
    }
    OptionalLong id = id(device, handle);
    while (true) {
      DriverStream state = state(device, handle, id);
      state.expose();
      if (state.wrapped()) {
        return state;
      }
      forget(state); // another thread is closing the last wrapper of it
    }
  }

  /** The identity of a stream; none while it is capturing, which the question would spoil. */
  private static OptionalLong id(Device device, long handle) {
    return device.ask(driver ->
        driver.captures().streamIsCapturing(device.id(), handle) == 0
            ? OptionalLong.of(driver.streams().streamGetId(device.id(), handle))
            : OptionalLong.empty());
  }

  /** What is known of a stream: while a wrapper is open, its handle is as good as its identity. */
  private DriverStream state(Device device, long handle, OptionalLong id) {
    Key unnamed = new Key(device.id(), ~handle); // no identity is that large
    DriverStream known = byId.get(unnamed);
    if (known == null && id.isEmpty()) {
      for (DriverStream each : byId.values()) {
        known = each.handle == handle && each.device == device ? each : known;
      }
    }
    if (known != null) {
      return known;
    }
    Key key = id.isEmpty() ? unnamed : new Key(device.id(), id.getAsLong());
    return byId.computeIfAbsent(key, k -> foreign(device, handle, k.id));
  }

  private DriverStream foreign(Device device, long handle, long id) {
    DriverStream state = DriverStream.foreign(this, device, handle);
    state.id = id;
    return state;
  }

  /** The default stream of this thread, once for each device. */
  public DriverStream perThread(Device device) {
    endThoseOfEndedThreads();
    DriverStream state = DriverStream.perThread(this, device);
    perThread.add(state);
    session.checkOpen(); // again: whoever ends it may not have seen the new one
    return state;
  }

  private void endThoseOfEndedThreads() {
    for (DriverStream state : List.copyOf(perThread)) {
      if (state.isOfEndedThread() && perThread.remove(state)) {
        session.gate().run(state::endNow);
      }
    }
  }

  /** Has a stream end once the capture that it takes part in does. */
  public void endLater(DriverStream state) {
    captured.add(state);
  }

  /**
   * A stream of its own as far as pools are concerned: memory that the capturing stream has used
   * before is not for the graph, which can run in another stream beside that use. What is captured
   * in one stream is in order, so each stream has one for each capture.
   */
  public DriverStream ofCapture(DriverStream stream, Capture capture) {
    return ofCaptures.computeIfAbsent(
        new CaptureKey(capture.memory, stream.device, capture.number(stream)),
        key -> DriverStream.ofCapture(stream, key.memory, key.number));
  }

  /** Releases memory once no graph can use it any more. */
  public void releaseAfterGraphs(UsedMemory block) {
    ofGraphs.free(block, null);
  }

  /** Takes back what graphs that are gone by now have used, and ends the streams that captured. */
  private void poll() {
    captures.poll();
    if (!ofCaptures.isEmpty()) {
      ofCaptures.entrySet().removeIf(Streams::retireIfDone);
    }
    if (!ofGraphs.isEmpty()) {
      ofGraphs.poll();
    }
    endCaptured();
    endThoseOfEndedThreads();
  }

  /** Retires the caches of captures once their graphs are gone. */
  private static boolean retireIfDone(Map.Entry<CaptureKey, DriverStream> one) {
    boolean done = one.getKey().memory.isDone();
    if (done) {
      one.getValue().retireArenas();
    }
    return done;
  }

  private void endCaptured() {
    for (int i = captured.size(); i > 0; i--) {
      DriverStream state = captured.poll();
      if (state != null) {
        session.gate().run(state::end);
      }
    }
  }

  /**
   * Ends a stream that another thread has closed, in the one that began the capture which it took
   * part in: for modes other than relaxed nobody else can. Does nothing if it is open.
   */
  public void endLeft(DriverStream state) {
    if (state.isClosing()) {
      boolean _ =
          Await.until(
              () -> state.isClosed() || session.isClosed() || endIfLeft(state),
              Ending.PATIENCE_NANOS);
    }
  }

  private boolean endIfLeft(DriverStream state) {
    boolean left = captured.remove(state);
    if (left) {
      session.gate().run(state::end);
    }
    return left;
  }

  /** Ends the captures that began in streams of this library, when nobody queues work any more. */
  public void endCaptures(Failures failures) {
    for (DriverStream state : byId.values()) {
      if (state.isOwned() && state.isExposed() && state.ending().tryHoldAgain()) {
        failures.run(() -> state.capturing.alone(state.capturing::endNow));
        state.ending().unhold();
      }
    }
  }

  /** The streams that joined a capture which began in another. */
  List<StreamCapture> joinedTo(OwnCapture capture) {
    List<StreamCapture> joined = new ArrayList<>();
    for (DriverStream state : byId.values()) {
      if (state.capturing.own.isJoinedTo(capture)) {
        joined.add(state.capturing);
      }
    }
    return joined;
  }

  /**
   * Waits for the work that streams of a device have now, also of those that were closed; of the
   * null stream, whose end is that of all blocking streams, unless it may not be queried. A stream
   * that is capturing is left alone.
   */
  private void await(Device device) {
    List<WorkMarker> made = new ArrayList<>();
    try {
      for (DriverStream state : byId.values()) {
        if (state.device == device) {
          add(state, made);
        }
      }
      if (!captures.isAnyPossible()) { // else a question could end one that begins now
        add(nullStream(device), made);
      }
      List<Fence> work = new ArrayList<>(made);
      ended.addTo(work, device);
      work.forEach(Fence::await);
    } catch (RuntimeException | Error e) {
      made.forEach(ended::add); // nobody else has them
      throw e;
    }
  }

  private static void add(DriverStream state, List<WorkMarker> made) {
    WorkMarker marker = state.marker();
    if (marker != null) {
      made.add(marker);
    }
  }

  /**
   * Waits for the streams that are known, then for all others; false if it could not for these. See
   * {@link io.cuvette.internal.session.DeferredFrees#awaitWork}.
   */
  public boolean awaitAll(Device device) {
    await(device);
    return session.frees().awaitWork(device);
  }

  /**
   * Waits for the operations that found the session open, and queue work: when all have left, no
   * work comes any more.
   */
  public void awaitQueueing() {
    for (Device device : session.devices()) {
      nullStream(device).ending().awaitQueueing();
      legacyStream(device).ending().awaitQueueing();
    }
    byId.values().forEach(state -> state.ending().awaitQueueing());
    perThread.forEach(state -> state.ending().awaitQueueing());
  }

  /** Nobody uses a stream any more, at the end of all: its thread waits for those who do. */
  public void shut() {
    for (Device device : session.devices()) {
      nullStream(device).ending().takeOver();
      legacyStream(device).ending().takeOver();
    }
    byId.values().forEach(state -> state.ending().takeOver());
    perThread.forEach(state -> state.ending().takeOver());
  }

  public void forget(DriverStream state) {
    byId.remove(new Key(state.device.id(), state.id), state);
  }
}
