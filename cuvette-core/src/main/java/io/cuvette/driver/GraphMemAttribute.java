package io.cuvette.driver;

/** What a device reports about the memory of its graphs, in bytes (CUgraphMem_attribute). */
public enum GraphMemAttribute {
  /** In use by allocation nodes. */
  USED_CURRENT(0),
  /** The most that was in use since this was set to 0, which is all that it can be set to. */
  USED_HIGH(1),
  /** Reserved from the device. */
  RESERVED_CURRENT(2),
  /** The most that was reserved since this was set to 0, which is all that it can be set to. */
  RESERVED_HIGH(3);

  private final int code;

  GraphMemAttribute(int code) {
    this.code = code;
  }

  /** {@return the number that the driver has for the attribute} */
  public int code() {
    return code;
  }
}
