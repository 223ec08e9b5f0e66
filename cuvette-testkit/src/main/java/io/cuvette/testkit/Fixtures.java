package io.cuvette.testkit;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.StreamOptions;
import java.lang.reflect.Parameter;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Set;

/** The streams and pools that a test takes as parameters. Confined to the run. */
final class Fixtures {
  private static final Set<Class<?>> TYPES =
      Set.of(
          CudaStream.class,
          MemoryPool.class,
          PinnedMemoryPool.class,
          AsyncMemoryPool.class,
          DeviceMemoryResource.class);

  private final Deque<Fixture> made = new ArrayDeque<>();

  private record Fixture(Object value, Runnable check, Runnable close) {}

  static boolean has(Class<?> type) {
    return TYPES.contains(type);
  }

  Object make(Cuda cuda, Parameter parameter) {
    Fixture fixture = of(cuda, parameter);
    made.push(fixture);
    return fixture.value;
  }

  private static Fixture of(Cuda cuda, Parameter parameter) {
    Class<?> type = parameter.getType();
    if (type == CudaStream.class) {
      CudaStream stream = stream(cuda, parameter);
      return new Fixture(stream, () -> {}, stream::close);
    }
    if (type == MemoryPool.class) {
      MemoryPool pool = new MemoryPool(cuda);
      return new Fixture(pool, () -> check(pool.isClosed(), pool::assertConsistent), pool::close);
    }
    if (type == PinnedMemoryPool.class) {
      PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
      return new Fixture(pool, () -> check(pool.isClosed(), pool::assertConsistent), pool::close);
    }
    if (type == AsyncMemoryPool.class) {
      AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
      return new Fixture(pool, () -> {}, pool::close);
    }
    DeviceMemoryResource resource =
        new DeviceMemoryResource(
            cuda.device(deviceOf(parameter)), DeviceMemoryResourceOptions.DEFAULTS);
    return new Fixture(resource, () -> {}, resource::close);
  }

  private static void check(boolean isClosed, Runnable check) {
    if (!isClosed) {
      check.run();
    }
  }

  private static CudaStream stream(Cuda cuda, Parameter parameter) {
    StreamOptions options =
        parameter.isAnnotationPresent(NonBlocking.class)
            ? StreamOptions.NON_BLOCKING
            : StreamOptions.DEFAULTS;
    return cuda.device(deviceOf(parameter)).createStream(options);
  }

  private static int deviceOf(Parameter parameter) {
    OnDevice device = parameter.getAnnotation(OnDevice.class);
    return device == null ? 0 : device.value();
  }

  /** Closes all of them, the last one first; those of a test that passed are checked before. */
  void close(Cleanup cleanup, boolean passed) {
    for (Fixture fixture : made) {
      if (passed) {
        cleanup.run(fixture.check);
      }
      cleanup.run(fixture.close);
    }
  }
}
