package io.cuvette.sim.internal.base;

import io.cuvette.driver.CudaStatus;
import org.jspecify.annotations.Nullable;

/**
 * What a handle is a handle of: a tag in its top byte, different from that of any device address.
 * Immutable.
 */
public enum HandleKind {
  STREAM("stream", "a", 0x51),
  EVENT("event", "an", 0x52),
  GRAPH("graph", "a", 0x53),
  MALLOC_FUNCTION("malloc function", "a", 0x54),
  FREE_FUNCTION("free function", "a", 0x55),
  POOL("memory pool", "a", 0x56),
  EXECUTABLE("graph executable", "a", 0x57),
  USER_OBJECT("user object", "a", 0x58),
  LIBRARY("library", "a", 0x59),
  KERNEL("kernel", "a", 0x5A),
  NODE("graph node", "a", 0x5B),
  CONDITION("condition", "a", 0x5C),
  ALLOCATION("allocation handle", "an", 0x5D),
  MATH_HANDLE("library handle", "a", 0x60);

  private static final int TAG_SHIFT = 56;
  private static final int GENERATION_SHIFT = 32;

  private final String text;
  private final String article;
  private final long tag;

  HandleKind(String text, String article, long tag) {
    this.text = text;
    this.article = article;
    this.tag = tag;
  }

  public static @Nullable HandleKind of(long handle) {
    for (HandleKind kind : values()) {
      if (handle >>> TAG_SHIFT == kind.tag) {
        return kind;
      }
    }
    return null;
  }

  public static int index(long handle) {
    return ((int) handle >>> 4) - 1;
  }

  public long handle(int generation, int index) {
    return tag << TAG_SHIFT | (long) generation << GENERATION_SHIFT | (index + 1L) << 4;
  }

  /** What is wrong with a value given where a live handle of this kind is expected. */
  public SimRefusal refused(long handle) {
    return new SimRefusal(
        hasInvalidHandles() ? CudaStatus.INVALID_HANDLE : CudaStatus.INVALID_VALUE,
        "%s: 0x%x (expected: a live %s; this is %s)".formatted(text, handle, text, what(handle)));
  }

  /** As the driver documents it: some know INVALID_VALUE alone. */
  private boolean hasInvalidHandles() {
    return switch (this) {
      case POOL, KERNEL, NODE, CONDITION, ALLOCATION -> false;
      default -> true;
    };
  }

  private String what(long value) {
    HandleKind kind = of(value);
    if (kind != null) {
      return kind == this ? "one that was destroyed or never made" : kind.article + " " + kind.text;
    }
    int device = Addresses.deviceOf(value);
    if (device >= 0) {
      return "an address of device " + device;
    }
    return Addresses.isVirtual(value) ? "an address of virtual memory" : "no handle";
  }
}
