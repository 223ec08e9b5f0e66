package io.cuvette.cli.replay;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** The pools that a trace can be replayed through. Stateless. */
enum PoolKind {
  /** The caching pool. */
  MEMORY,
  /** The caching pool over virtual memory. */
  ELASTIC,
  /** A new pool of the driver, stream-ordered. */
  ASYNC,
  /** No pool: the driver each time. */
  DIRECT;

  /** A new pool; it ends with the Cuda. */
  MemoryResource open(Cuda cuda) {
    return switch (this) {
      case MEMORY -> new MemoryPool(cuda);
      case ELASTIC -> new ElasticMemoryPool(cuda);
      case ASYNC -> new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
      case DIRECT -> MemoryResource.direct();
    };
  }

  /**
   * The most bytes that a pool held from the driver on a device.
   *
   * @param peakBlockBytes the most that its blocks in use had; without a pool, that is it
   */
  static long peakHeldBytes(MemoryResource resource, CudaDevice device, long peakBlockBytes) {
    return switch (resource) {
      case MemoryPool pool -> pool.stats(device).peakHeldBytes();
      case ElasticMemoryPool pool -> pool.stats(device).peakHeldBytes();
      case AsyncMemoryPool pool -> pool.attributes(device).reservedMemHigh();
      default -> peakBlockBytes;
    };
  }

  /** How it is written on the command line. */
  String text() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Reads the value of the option. Stateless. */
  static final class Converter implements ITypeConverter<PoolKind> {
    @Override
    public PoolKind convert(String text) {
      for (PoolKind kind : values()) {
        if (kind.text().equals(text.strip())) {
          return kind;
        }
      }
      String known = Arrays.stream(values()).map(PoolKind::text).collect(Collectors.joining(", "));
      throw new TypeConversionException("'%s' (expected: %s)".formatted(text, known));
    }
  }
}
