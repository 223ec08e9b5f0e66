package io.cuvette.array;

/**
 * How an array is exported: what a consumer asks for by the arguments of {@code __dlpack__}.
 *
 * @param isVersioned whether as a DLManagedTensorVersioned, which consumers ask for by {@code
 *     max_version} of 1.0 or later, or as a DLManagedTensor
 * @param stream the consumer's stream of the device, which is made to wait for the array's work:
 *     {@link #LEGACY_STREAM}, {@link #PER_THREAD_STREAM}, the handle of a stream, or {@link
 *     #NO_STREAM}. Arrays on the host have no such work
 * @param isCopy whether a copy is exported, which is the consumer's alone ({@code copy=True})
 * @param isPlainHost whether page-locked memory is exported as any memory of the host ({@code
 *     dl_device=(1, 0)}), for consumers that know no other
 */
public record DlpackOptions(boolean isVersioned, long stream, boolean isCopy, boolean isPlainHost) {

  /** The consumer orders its work itself. */
  public static final long NO_STREAM = -1;

  /** The legacy default stream, which is meant where a consumer names none. */
  public static final long LEGACY_STREAM = 1;

  /** The default stream of the calling thread. */
  public static final long PER_THREAD_STREAM = 2;

  /** Versioned, for the legacy default stream, the memory itself as what it is. */
  public static final DlpackOptions DEFAULTS = new DlpackOptions(true, LEGACY_STREAM, false, false);

  /** Checks the stream. */
  public DlpackOptions {
    if (stream == 0 || stream < NO_STREAM) {
      throw new IllegalArgumentException(
          "stream: %d (expected: -1 for none, 1 for the legacy default stream, 2 for that of the"
                  .formatted(stream)
              + " thread, or a handle; 0 could mean either default stream)");
    }
  }

  /**
   * {@return the same as a structure of one kind}
   *
   * @param versioned whether it is versioned
   */
  public DlpackOptions withVersioned(boolean versioned) {
    return new DlpackOptions(versioned, stream, isCopy, isPlainHost);
  }

  /**
   * {@return the same for a stream of the consumer}
   *
   * @param consumer the stream
   */
  public DlpackOptions withStream(long consumer) {
    return new DlpackOptions(isVersioned, consumer, isCopy, isPlainHost);
  }

  /**
   * {@return the same with a copy or without}
   *
   * @param copy whether a copy is exported
   */
  public DlpackOptions withCopy(boolean copy) {
    return new DlpackOptions(isVersioned, stream, copy, isPlainHost);
  }

  /**
   * {@return the same with page-locked memory as plain memory of the host or not}
   *
   * @param plainHost whether it is
   */
  public DlpackOptions withPlainHost(boolean plainHost) {
    return new DlpackOptions(isVersioned, stream, isCopy, plainHost);
  }
}
