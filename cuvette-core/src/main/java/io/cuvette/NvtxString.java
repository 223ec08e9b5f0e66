package io.cuvette;

/** A text that {@link NvtxDomain#register} has registered. Immutable. */
public final class NvtxString {
  private final NvtxDomain domain;
  private final String text;
  private final long handle;

  NvtxString(NvtxDomain domain, String text, long handle) {
    this.domain = domain;
    this.text = text;
    this.handle = handle;
  }

  /** {@return the domain it belongs to} */
  public NvtxDomain domain() {
    return domain;
  }

  /** {@return the text} */
  public String text() {
    return text;
  }

  /** The handle of the tool; 0 if it has none. */
  long handle() {
    return handle;
  }

  @Override
  public String toString() {
    return text;
  }
}
