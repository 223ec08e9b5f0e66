package io.cuvette.internal.stream;

import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.PriorityRange;
import io.cuvette.driver.StreamHandle;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.lifetime.Fence;
import io.cuvette.internal.lifetime.Lifetime;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.lang.ref.ReferenceQueue;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Function;

/**
 * The streams of one {@link Session} by the identity that the driver never uses twice. Thread-safe.
 */
public final class Streams {
  private final Session session;
  private final SyncListener listener;
  private final Relief relief;
  private final Function<StreamState, StreamLocal> locals;
  private final Captures captures;
  private final Callbacks callbacks;
  private final DeviceWaits waits = new DeviceWaits(this);
  private final HostViews views = new HostViews();
  private final List<StreamState> nullStreams;
  private final List<StreamState> legacyStreams;
  private final ConcurrentHashMap<Key, StreamState> byId = new ConcurrentHashMap<>();

  /** The ends of the per-thread streams: a list of the streams would keep their threads. */
  private final Set<StreamLifetime> perThreadEnds = ConcurrentHashMap.newKeySet();

  private final EndedStreams ended = new EndedStreams();

  /** Streams that were closed while they took part in a capture. */
  private final ConcurrentLinkedQueue<StreamState> captured = new ConcurrentLinkedQueue<>();

  private final ReferenceQueue<Object> forgottenPerThread = new ReferenceQueue<>();

  private record Key(int device, long id) {}

  /**
   * Begins without streams but the built-in ones.
   *
   * @param locals makes what pools keep for a stream
   */
  public Streams(
      Session session,
      SyncListener listener,
      Relief relief,
      Function<StreamState, StreamLocal> locals) {
    this.session = session;
    this.listener = listener;
    this.relief = relief;
    this.locals = locals;
    this.captures = new Captures(session.driver());
    this.nullStreams = builtIn(StreamHandle.NULL);
    this.legacyStreams = builtIn(StreamHandle.LEGACY);
    this.callbacks = new Callbacks(this);
    session.whenDrained(captures::poll);
    session.whenDrained(this::poll);
  }

  private List<StreamState> builtIn(long handle) {
    return session.devices().stream()
        .map(device -> StreamState.foreign(this, device, handle))
        .toList();
  }

  public Session session() {
    return session;
  }

  /** What pools keep for a new stream. */
  public StreamLocal local(StreamState of) {
    return locals.apply(of);
  }

  /** What is told of waits. */
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

  /** What runs callbacks. */
  public Callbacks callbacks() {
    return callbacks;
  }

  /** The waits for whole devices. */
  public DeviceWaits waits() {
    return waits;
  }

  /** What users see memory of buffers through. */
  public HostViews views() {
    return views;
  }

  /** The null stream of a device, handle 0. */
  public StreamState nullStream(Device device) {
    return nullStreams.get(device.id());
  }

  /** The null stream of a device under its own handle 1. */
  public StreamState legacyStream(Device device) {
    return legacyStreams.get(device.id());
  }

  /**
   * Makes a stream (cuStreamCreateWithPriority), which ends with the result.
   *
   * @throws IllegalArgumentException if the priority is none of the device's
   */
  public OpenStream create(Device device, StreamOptions options) {
    return session.entrance().make(() -> open(device, options));
  }

  /** A stream of the library's own, apart from the hardware queues that most streams share. */
  public OpenStream createForLibrary(Device device) {
    StreamOptions options =
        StreamOptions.NON_BLOCKING.withPriority(device.priorityRange().greatest());
    OpenStream made = create(device, options);
    session.leaks().closed(made.state.lifetime());
    return made;
  }

  private OpenStream open(Device device, StreamOptions options) {
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
    StreamLifetime lifetime = null;
    try {
      StreamState state = created(device, handle, !options.nonBlocking());
      OpenStream made = new OpenStream(state, true);
      lifetime = state.endsWith(made);
      byId.put(new Key(device.id(), state.id), state); // complete
      return made;
    } catch (OutOfMemoryError e) {
      driver.streams().streamDestroy(device.id(), handle); // a child if that fails, perhaps
      if (lifetime != null) {
        lifetime.discard();
      }
      throw e;
    } catch (RuntimeException e) {
      Failures.closeAfter(e, () -> driver.streams().streamDestroy(device.id(), handle));
      throw e;
    }
  }

  private StreamState created(Device device, long handle, boolean blocking) {
    long id = session.driver().streams().streamGetId(device.id(), handle);
    StreamState state = StreamState.owned(this, device, handle, blocking);
    state.id = id;
    return state;
  }

  /** The streams that were closed before their work was done. */
  public EndedStreams ended() {
    return ended;
  }

  /** A stream that somebody else made, with one wrapper more. */
  public StreamState wrap(Device device, long handle) {
    int of = device.ask(driver -> driver.streams().streamGetDevice(device.id(), handle));
    if (of != device.id()) {
      throw new IllegalArgumentException(
          "stream 0x%x belongs to device %d (expected: %s)".formatted(handle, of, device));
    }
    OptionalLong id = id(device, handle);
    while (true) {
      StreamState state = state(device, handle, id);
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

  /**
   * What is known of a stream, which lives as long as a wrapper of it is open: as long its handle
   * is as good as its identity.
   */
  private StreamState state(Device device, long handle, OptionalLong id) {
    Key unnamed = new Key(device.id(), ~handle); // no identity is that large
    StreamState known = byId.get(unnamed);
    if (known == null && id.isEmpty()) {
      for (StreamState each : byId.values()) {
        known = each.handle == handle && each.device == device ? each : known;
      }
    }
    if (known != null) {
      return known;
    }
    Key key = id.isEmpty() ? unnamed : new Key(device.id(), id.getAsLong());
    return byId.computeIfAbsent(key, k -> foreign(device, handle, k.id));
  }

  private StreamState foreign(Device device, long handle, long id) {
    StreamState state = StreamState.foreign(this, device, handle);
    state.id = id;
    return state;
  }

  /** The default stream of this thread, once for each device. */
  public StreamState perThread(Device device) {
    for (var each = forgottenPerThread.poll(); each != null; each = forgottenPerThread.poll()) {
      perThreadEnds.remove(each);
    }
    StreamState state = StreamState.perThread(this, device, forgottenPerThread);
    perThreadEnds.add(state.lifetime());
    session.checkOpen(); // again: whoever ends it may not have seen the new one
    return state;
  }

  /** Has a stream end once the capture that it takes part in does. */
  public void endLater(StreamState state) {
    captured.add(state);
  }

  /** Ends the streams whose captures have ended by now. */
  public void poll() {
    for (int i = captured.size(); i > 0; i--) {
      StreamState state = captured.poll();
      if (state != null) {
        session.entrance().run(state::end);
      }
    }
  }

  /** Ends the captures that began in streams of this library. */
  public void endCaptures(Failures failures) {
    for (StreamState state : byId.values()) {
      if (state.isOwned() && state.lifetime().tryHoldAgain()) {
        failures.run(state.capturing::end);
        state.lifetime().unhold();
      }
    }
  }

  /**
   * Waits for the work that streams of a device have now, also of those that were closed; of the
   * null stream, whose end is that of all blocking streams, unless it may not be asked. A stream
   * that is capturing is left alone.
   */
  public void await(Device device) {
    List<Guard> made = new ArrayList<>();
    try {
      for (StreamState state : byId.values()) {
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

  private static void add(StreamState state, List<Guard> made) {
    Guard guard = state.guard();
    if (guard != null) {
      made.add(guard);
    }
  }

  /**
   * Waits for the operations that found the session open, and queue work: when all have left, no
   * work comes any more.
   */
  public void awaitQueueing() {
    for (Device device : session.devices()) {
      nullStream(device).lifetime().awaitQueueing();
      legacyStream(device).lifetime().awaitQueueing();
    }
    byId.values().forEach(state -> state.lifetime().awaitQueueing());
    perThreadEnds.forEach(StreamLifetime::awaitQueueing);
  }

  /** Nobody uses a stream any more, at the end of all: its thread waits for those who do. */
  public void shut() {
    for (Device device : session.devices()) {
      nullStream(device).lifetime().takeOver();
      legacyStream(device).lifetime().takeOver();
    }
    byId.values().forEach(state -> state.lifetime().takeOver());
    perThreadEnds.forEach(Lifetime::takeOver);
  }

  public void forget(StreamState state) {
    byId.remove(new Key(state.device.id(), state.id), state);
  }
}
