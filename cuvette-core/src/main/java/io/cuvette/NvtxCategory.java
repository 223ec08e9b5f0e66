package io.cuvette;

import java.util.Objects;

/**
 * A group of marks and ranges that {@link NvtxDomain#category} has named. Immutable.
 *
 * @param domain the domain it belongs to
 * @param number its number, >= 1
 * @param name its name
 */
public record NvtxCategory(NvtxDomain domain, int number, String name) {

  /** Checks that nothing is null. */
  public NvtxCategory {
    Objects.requireNonNull(domain, "domain");
    Objects.requireNonNull(name, "name");
  }
}
