package io.cuvette;

import io.cuvette.driver.StreamHandle;
import io.cuvette.internal.PerThread;
import java.lang.ref.ReferenceQueue;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/**
 * The streams of one {@link Cuda} by the identity that the driver never uses twice. Thread-safe.
 */
final class StreamStates {
  private final Cuda cuda;
  private final ConcurrentHashMap<Key, StreamState> byId = new ConcurrentHashMap<>();
  private final PerThread<@Nullable CudaStream[]> perThread;

  /** The ends of the per-thread streams: a list of the streams would keep their threads. */
  private final Set<StreamLifetime> perThreadEnds = ConcurrentHashMap.newKeySet();

  private final EndedStreams ended = new EndedStreams();

  /** Streams that were closed while they took part in a capture. */
  private final ConcurrentLinkedQueue<StreamState> captured = new ConcurrentLinkedQueue<>();

  private final ReferenceQueue<Object> forgottenPerThread = new ReferenceQueue<>();

  private record Key(int device, long id) {}

  StreamStates(Cuda cuda) {
    this.cuda = cuda;
    this.perThread = new PerThread<>(() -> new CudaStream[cuda.deviceCount()]);
  }

  StreamState created(CudaDevice device, long handle, boolean blocking) {
    long id = cuda.driver().streamGetId(device.id(), handle);
    StreamState state = StreamState.owned(cuda, device, handle, blocking);
    state.id = id;
    return state;
  }

  /** Lists a stream of this library, which is complete. */
  void list(StreamState state) {
    byId.put(new Key(state.device.id(), state.id), state);
  }

  /** The streams that were closed before their work was done. */
  EndedStreams ended() {
    return ended;
  }

  CudaStream wrap(CudaDevice device, long handle, @Nullable Object owner) {
    if (handle == StreamHandle.NULL) {
      return device.nullStream();
    }
    if (handle == StreamHandle.LEGACY) {
      return device.legacyStream();
    }
    if (handle == StreamHandle.PER_THREAD) {
      return perThread(device);
    }
    int of = device.ask(driver -> driver.streamGetDevice(device.id(), handle));
    if (of != device.id()) {
      throw new IllegalArgumentException(
          "stream 0x%x belongs to device %d (expected: %s)".formatted(handle, of, device));
    }
    OptionalLong id = id(device, handle);
    while (true) {
      StreamState state = state(device, handle, id);
      state.expose();
      if (state.wrapped()) {
        return new CudaStream(state, owner);
      }
      forget(state); // another thread is closing the last wrapper of it
    }
  }

  /** The identity of a stream; none while it is capturing, which the question would spoil. */
  private static OptionalLong id(CudaDevice device, long handle) {
    return device.ask(driver ->
        driver.streamIsCapturing(device.id(), handle) == 0
            ? OptionalLong.of(driver.streamGetId(device.id(), handle))
            : OptionalLong.empty());
  }

  /**
   * What is known of a stream, which lives as long as a wrapper of it is open: as long its handle
   * is as good as its identity.
   */
  private StreamState state(CudaDevice device, long handle, OptionalLong id) {
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

  private StreamState foreign(CudaDevice device, long handle, long id) {
    StreamState state = StreamState.foreign(cuda, device, handle);
    state.id = id;
    return state;
  }

  CudaStream perThread(CudaDevice device) {
    cuda.checkOpen();
    Thread thread = Thread.currentThread();
    if (thread.isVirtual()) {
      throw new WrongThreadException(
          "the per-thread default stream belongs to an OS thread, which %s does not have (expected: a platform thread, "
                  .formatted(thread)
              + "or a stream of createStream())");
    }
    @Nullable CudaStream[] mine = perThread.get();
    CudaStream stream = mine[device.id()];
    if (stream == null) {
      stream = new CudaStream(newPerThread(device), null);
      mine[device.id()] = stream;
    }
    return stream;
  }

  private StreamState newPerThread(CudaDevice device) {
    for (var each = forgottenPerThread.poll(); each != null; each = forgottenPerThread.poll()) {
      perThreadEnds.remove(each);
    }
    StreamState state = StreamState.perThread(cuda, device, forgottenPerThread);
    perThreadEnds.add(state.lifetime());
    cuda.checkOpen(); // again: whoever ends it may not have seen the new one
    return state;
  }

  /** Has a stream end once the capture that it takes part in does. */
  void endLater(StreamState state) {
    captured.add(state);
  }

  /** Ends the streams whose captures have ended by now. */
  void poll() {
    for (int i = captured.size(); i > 0; i--) {
      StreamState state = captured.poll();
      if (state != null) {
        cuda.owned().entrance().run(state::end);
      }
    }
  }

  /** Ends the captures that began in streams of this library. */
  void endCaptures(Failures failures) {
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
  void await(CudaDevice device) {
    List<Guard> made = new ArrayList<>();
    try {
      for (StreamState state : byId.values()) {
        if (state.device == device) {
          add(state, made);
        }
      }
      if (!cuda.captures().isAnyPossible()) { // else a question could end one that begins now
        add(device.nullStream().state, made);
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

  /** Nobody uses a stream any more, at the end of all: its thread waits for those who do. */
  void shut() {
    for (CudaDevice device : cuda.devices()) {
      device.nullStream().state.lifetime().takeOver();
      device.legacyStream().state.lifetime().takeOver();
    }
    byId.values().forEach(state -> state.lifetime().takeOver());
    perThreadEnds.forEach(Lifetime::takeOver);
    perThread.close();
  }

  void forget(StreamState state) {
    byId.remove(new Key(state.device.id(), state.id), state);
  }
}
