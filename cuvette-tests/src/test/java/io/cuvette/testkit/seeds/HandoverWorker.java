package io.cuvette.testkit.seeds;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.EventOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.seeds.HandoverProgram.Parcel;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** One thread of a {@link HandoverProgram}, with a stream and the buffers that are its own now. */
final class HandoverWorker {
  private static final int[] SIZES = {512, 4096, 50_000, 400_000, 1 << 20};
  private static final int MOST = 6;

  /** A buffer of which every byte has one value for who comes behind the work of the stream. */
  private record Mine(Buffer buffer, byte value) {}

  private final HandoverProgram all;
  private final Cuda cuda;
  private final CudaDevice device;
  private final ElasticMemoryPool elastic;
  private final PinnedMemoryPool pinned;
  private final int number;
  private final SplittableRandom random;
  private final List<Mine> mine = new ArrayList<>();
  private CudaStream stream;

  /** Whether the stream was created here. */
  private boolean ends;

  HandoverWorker(
      HandoverProgram all,
      Cuda cuda,
      ElasticMemoryPool elastic,
      PinnedMemoryPool pinned,
      int number,
      SplittableRandom random) {
    this.all = all;
    this.cuda = cuda;
    this.device = cuda.device(0);
    this.elastic = elastic;
    this.pinned = pinned;
    this.number = number;
    this.random = random;
    this.stream = device.nullStream();
  }

  /** Its steps, as long as no other has failed. */
  void work(BooleanSupplier goesOn) throws Exception {
    for (int left = 60 + random.nextInt(40); left > 0 && goesOn.getAsBoolean(); left--) {
      step();
    }
    for (Mine one : mine) {
      check(one);
      one.buffer().close();
    }
    if (ends) {
      stream.close();
    }
  }

  private void step() throws Exception {
    int kind = random.nextInt(17);
    switch (kind) {
      case 0, 1, 2 -> allocate();
      case 3, 4, 5 -> receive();
      case 6, 7 -> renew();
      case 8 -> trim();
      case 9 -> limit();
      default -> {
        if (!mine.isEmpty()) {
          use(kind);
        }
      }
    }
  }

  private void use(int kind) throws Exception {
    switch (kind) {
      case 10, 11 -> send(taken());
      case 12 -> fill(taken());
      case 13 -> copy(taken());
      case 14 -> check(mine.getFirst());
      case 15 -> taken().buffer().close();
      default -> leave(taken());
    }
  }

  private Mine taken() {
    return mine.remove(random.nextInt(mine.size()));
  }

  private void allocate() {
    if (mine.size() >= MOST) {
      taken().buffer().close();
    }
    int bytes = SIZES[random.nextInt(SIZES.length)];
    try {
      int from = random.nextInt(all.resources.size());
      Buffer buffer = all.resources.get(from).allocate(bytes, stream);
      fill(new Mine(buffer, (byte) 0));
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      for (int left = mine.size() / 2; left > 0; left--) {
        taken().buffer().close();
      }
    }
  }

  private void fill(Mine one) {
    byte value = (byte) random.nextInt();
    one.buffer().fill(value, stream);
    mine.add(new Mine(one.buffer(), value));
  }

  private void copy(Mine to) {
    Mine from = mine.isEmpty() ? to : mine.getFirst();
    if (from == to) {
      mine.add(to);
      return;
    }
    long bytes = Math.min(to.buffer().byteSize(), from.buffer().byteSize());
    to.buffer().slice(bytes).fill(from.value(), stream);
    Buffer source = from.buffer().slice(0, bytes);
    Buffer target = to.buffer().slice(0, bytes);
    switch (random.nextInt(3)) {
      case 0 -> CopyBatch.of(List.of(target), List.of(source)).copy(stream);
      case 1 -> {
        CompletableFuture<Void> _ = target.copyFromAsync(source, stream);
      }
      default -> target.copyFrom(source, stream);
    }
    mine.add(new Mine(to.buffer(), from.value()));
  }

  private void send(Mine one) {
    CudaEvent event = device.createEvent(EventOptions.ORDER_ONLY);
    if (random.nextInt(4) == 0) {
      stream.synchronize(); // then the event need not be recorded
    } else {
      event.record(stream);
    }
    int to = random.nextInt(all.inboxes.size());
    all.inboxes.get(to).add(new Parcel(one.buffer(), one.value(), event));
  }

  private void receive() {
    Parcel parcel = all.inboxes.get(number).poll();
    if (parcel != null) {
      CudaEvent event = parcel.event();
      switch (random.nextInt(4)) {
        case 0 -> event.synchronize();
        case 1 -> {
          while (!event.isDone()) {
            Thread.yield(); // another virtual thread may have to go on
          }
        }
        default -> stream.waitFor(event);
      }
      event.close();
      mine.add(new Mine(parcel.buffer(), parcel.value()));
    }
  }

  private void check(Mine one) throws Exception {
    int bytes = (int) one.buffer().byteSize();
    if (random.nextBoolean()) {
      byte[] got = new byte[bytes];
      try (Scope _ = stream.use()) {
        one.buffer().copyTo(MemorySegment.ofArray(got));
      }
      check(one, MemorySegment.ofArray(got));
      return;
    }
    try (PinnedBuffer host = cuda.allocatePinned(bytes)) {
      one.buffer().copyTo(host, stream);
      switch (random.nextInt(3)) {
        case 0 -> stream.synchronize();
        case 1 -> stream.onComplete().get(60, TimeUnit.SECONDS);
        default -> {
          while (!stream.isDone()) {
            Thread.yield(); // another virtual thread may have to go on
          }
        }
      }
      check(one, host.segment());
    }
  }

  private void check(Mine one, MemorySegment got) {
    for (long at = 0; at < got.byteSize(); at += 1 + random.nextInt(97)) {
      byte found = got.get(ValueLayout.JAVA_BYTE, at);
      if (found != one.value()) {
        throw new AssertionError(
            "%s at %d: %d (expected: %d)".formatted(one.buffer(), at, found, one.value()));
      }
    }
  }

  /** To the listeners, to the collector, or to work that the library does not see. */
  private void leave(Mine one) {
    switch (random.nextInt(4)) {
      case 0 -> all.spare.add(one.buffer());
      case 1 -> {
        all.forgot = true;
        System.gc();
      }
      default -> {
        Buffer buffer = one.buffer();
        cuda.driver()
            .transfers()
            .memsetD8Async(0, buffer.address(), one.value(), buffer.byteSize(), stream.handle());
        buffer.recordUse(stream);
        buffer.close();
      }
    }
  }

  private void renew() {
    CudaStream old = stream;
    boolean oldEnds = ends;
    int kind = random.nextInt(6);
    boolean builtIn = kind == 0 || (kind == 1 && Thread.currentThread().isVirtual());
    ends = kind > 1;
    stream =
        builtIn
            ? device.nullStream()
            : kind == 1
                ? device.perThreadStream()
                : device.createStream(StreamOptions.DEFAULTS.withNonBlocking(kind > 3));
    if (random.nextBoolean()) {
      stream.waitFor(old);
    } else {
      old.synchronize();
    }
    if (oldEnds) {
      old.close();
    }
  }

  private void trim() {
    long _ =
        switch (random.nextInt(5)) {
          case 0 -> all.pools.get(random.nextInt(all.pools.size())).freeAllBlocks();
          case 1 -> elastic.trim(0);
          case 2 -> all.ordered.getLast().freeAllBlocks(stream);
          case 3 -> pinned.freeAllBlocks();
          default -> {
            all.ofDriver.get(random.nextInt(all.ofDriver.size())).trimTo(0);
            device.synchronize();
            yield 0;
          }
        };
  }

  private void limit() {
    MemoryLimit limit = random.nextBoolean() ? MemoryLimit.none() : MemoryLimit.ofBytes(2 << 20);
    switch (random.nextInt(3)) {
      case 0 -> all.pools.get(random.nextInt(all.pools.size())).setLimit(limit);
      case 1 -> elastic.setLimit(limit);
      default -> all.ordered.getFirst().setLimit(limit);
    }
  }
}
