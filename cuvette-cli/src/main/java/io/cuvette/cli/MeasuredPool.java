package io.cuvette.cli;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryPool;
import java.util.Arrays;
import java.util.Collection;
import java.util.Locale;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** The pools that commands measure. */
public enum MeasuredPool {
  /** The caching pool. */
  MEMORY,
  /** The caching pool over virtual memory. */
  ELASTIC,
  /** A new pool of the driver, stream-ordered. */
  ASYNC,
  /** The caching pool of page-locked host memory, which knows no streams. */
  PINNED,
  /** No pool: the driver each time. */
  DIRECT;

  /** A new pool, for the current device. */
  public OpenPool open(Cuda cuda) {
    CudaDevice device = cuda.currentDevice();
    return switch (this) {
      case MEMORY -> {
        MemoryPool pool = new MemoryPool(cuda);
        yield new OpenPool(
            pool,
            pool::close,
            limit -> pool.setLimit(device, limit),
            new OpenPool.Held(
                () -> pool.stats(device).heldBytes(), () -> pool.stats(device).peakHeldBytes()));
      }
      case ELASTIC -> {
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
        yield new OpenPool(
            pool,
            pool::close,
            limit -> pool.setLimit(device, limit),
            new OpenPool.Held(
                () -> pool.stats(device).heldBytes(), () -> pool.stats(device).peakHeldBytes()));
      }
      case ASYNC -> {
        AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
        yield new OpenPool(
            pool,
            pool::close,
            limit -> pool.setLimit(device, limit),
            new OpenPool.Held(
                () -> pool.attributes(device).reservedMemCurrent(),
                () -> pool.attributes(device).reservedMemHigh()));
      }
      case PINNED -> {
        PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
        MemoryResource resource = (bytes, _) -> pool.allocate(bytes);
        yield new OpenPool(resource, pool::close, null, null);
      }
      case DIRECT -> new OpenPool(MemoryResource.direct(), () -> {}, null, null);
    };
  }

  /** Whether its blocks are memory of a device. */
  public boolean isOfDevice() {
    return this != PINNED;
  }

  /** How it is written on the command line. */
  public String text() {
    return name().toLowerCase(Locale.ROOT);
  }

  private static MeasuredPool named(String text, Predicate<MeasuredPool> wanted) {
    return Arrays.stream(values())
        .filter(wanted)
        .filter(kind -> kind.text().equals(text.strip()))
        .findFirst()
        .orElseThrow(() ->
            new TypeConversionException("'%s' (expected: %s)".formatted(text, names(wanted))));
  }

  private static String names(Predicate<MeasuredPool> wanted) {
    return Arrays.stream(values())
        .filter(wanted)
        .map(MeasuredPool::text)
        .collect(Collectors.joining(", "));
  }

  /** Refuses an option of commas alone, which names no pool. */
  public static void checkNamed(Collection<MeasuredPool> pools, boolean any, CommonOptions common) {
    if (pools.isEmpty()) {
      String known = names(kind -> any || kind.isOfDevice());
      throw common.usage(
          "Invalid value for option '--pool': none (expected: %s)".formatted(known), null);
    }
  }

  /** Reads the value of an option that takes every pool. Stateless. */
  public static final class Any implements ITypeConverter<MeasuredPool> {
    /** Made by picocli. */
    public Any() {}

    @Override
    public MeasuredPool convert(String text) {
      return named(text, _ -> true);
    }
  }

  /** Reads the value of an option that takes pools of device memory. Stateless. */
  public static final class OfDevice implements ITypeConverter<MeasuredPool> {
    /** Made by picocli. */
    public OfDevice() {}

    @Override
    public MeasuredPool convert(String text) {
      return named(text, MeasuredPool::isOfDevice);
    }
  }
}
