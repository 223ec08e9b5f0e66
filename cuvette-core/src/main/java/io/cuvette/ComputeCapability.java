package io.cuvette;

/**
 * The generation of a device's instruction set. Immutable.
 *
 * @param major such as 9 of 9.0
 * @param minor such as 0 of 9.0
 */
public record ComputeCapability(int major, int minor) implements Comparable<ComputeCapability> {

  /** {@return the digits without the dot, as compilers and CuPy write them: {@code 90}} */
  public String digits() {
    return "" + major + minor;
  }

  @Override
  public int compareTo(ComputeCapability other) {
    return major != other.major
        ? Integer.compare(major, other.major)
        : Integer.compare(minor, other.minor);
  }

  @Override
  public String toString() {
    return major + "." + minor;
  }
}
