package io.cuvette;

/** Advice about how managed memory will be used (CUmem_advise). */
public enum MemoryAdvice {
  /** Mostly read: each reader may have a copy of its own. The location is ignored. */
  SET_READ_MOSTLY(1),
  /** Revokes {@link #SET_READ_MOSTLY}. The location is ignored. */
  UNSET_READ_MOSTLY(2),
  /** Preferably kept at the location. */
  SET_PREFERRED_LOCATION(3),
  /** Revokes {@link #SET_PREFERRED_LOCATION}. The location is ignored. */
  UNSET_PREFERRED_LOCATION(4),
  /** Mapped for the location, which will access it: a device or the host, not a NUMA node. */
  SET_ACCESSED_BY(5),
  /** Revokes {@link #SET_ACCESSED_BY}. */
  UNSET_ACCESSED_BY(6);

  private final int code;

  MemoryAdvice(int code) {
    this.code = code;
  }

  int code() {
    return code;
  }

  boolean ignoresLocation() {
    return this == SET_READ_MOSTLY || this == UNSET_READ_MOSTLY || this == UNSET_PREFERRED_LOCATION;
  }

  boolean isAboutAccess() {
    return this == SET_ACCESSED_BY || this == UNSET_ACCESSED_BY;
  }
}
