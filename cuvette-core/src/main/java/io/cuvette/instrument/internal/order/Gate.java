package io.cuvette.instrument.internal.order;

import java.util.function.BooleanSupplier;

/**
 * What a stream waits for until the host lets it go on: work behind it comes after whatever the
 * host knew to be finished by then. Not thread-safe.
 *
 * @param number that of the work before it on its stream
 */
public record Gate(Lane lane, long number, BooleanSupplier closed) {
  public boolean isClosed() {
    return closed.getAsBoolean();
  }
}
