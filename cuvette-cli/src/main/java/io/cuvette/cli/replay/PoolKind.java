package io.cuvette.cli.replay;

import io.cuvette.Cuda;
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
  /** No pool: the driver each time. */
  DIRECT;

  /** A new pool; a {@link MemoryPool} is to be closed. */
  MemoryResource open(Cuda cuda) {
    return switch (this) {
      case MEMORY -> new MemoryPool(cuda);
      case DIRECT -> MemoryResource.direct();
    };
  }

  /** How it is written on the command line. */
  String text() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Reads what the command line says. Stateless. */
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
