package io.cuvette;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;

/** Two streams of a device whose streams are busy when the test says so, and pools on it. */
abstract class OrderingFixture {
  static final long BYTES = 64 << 10;

  enum Kind {
    CACHING,
    ELASTIC
  }

  private @Nullable BusyDriver madeBusy;
  private @Nullable OrderCallsDriver made;
  final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDevice("sim:pace=eager") // what is said to be done is
              .withDecorator(driver -> madeBusy = new BusyDriver(driver))
              .withDecorator(driver -> made = new OrderCallsDriver(driver)));
  final BusyDriver busy = Objects.requireNonNull(madeBusy);
  final OrderCallsDriver calls = Objects.requireNonNull(made);
  private final List<CudaStream> streams = new ArrayList<>();
  final CudaStream home = stream();
  final CudaStream other = stream();

  final CudaStream stream() {
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    streams.add(stream);
    return stream;
  }

  @AfterEach
  void close() {
    streams.forEach(busy::finish);
    cuda.close();
  }

  /** Has the other stream work that is not done until it is finished; gives its number there. */
  final long beginWork(Buffer buffer) {
    busy.begin(other);
    buffer.fill((byte) 1, other);
    return other.state.clock.now();
  }

  final MemoryResource pool(Kind kind) {
    return kind == Kind.CACHING ? new MemoryPool(cuda) : new ElasticMemoryPool(cuda);
  }

  static PoolStats stats(MemoryResource pool) {
    return pool instanceof MemoryPool caching
        ? caching.stats()
        : ((ElasticMemoryPool) pool).stats();
  }
}
