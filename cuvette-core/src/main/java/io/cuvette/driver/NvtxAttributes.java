package io.cuvette.driver;

import java.util.Objects;

/**
 * What a tool is passed with a mark or a range (nvtxEventAttributes_t). Immutable.
 *
 * @param message the text
 * @param registered the handle of the text if it was registered; else 0
 * @param category the number of the category; 0 for none
 * @param hasColor whether it has a color
 * @param color the color as ARGB, 8 bits each, if it has one
 * @param payloadType one of the numbers below
 * @param payload the bits of the payload if it has one
 */
public record NvtxAttributes(
    String message,
    long registered,
    int category,
    boolean hasColor,
    int color,
    int payloadType,
    long payload) {

  /** No payload. */
  public static final int NO_PAYLOAD = 0;

  /** A payload of 64 bits with a sign (NVTX_PAYLOAD_TYPE_INT64). */
  public static final int INT64 = 2;

  /** A payload that is a double (NVTX_PAYLOAD_TYPE_DOUBLE). */
  public static final int DOUBLE = 3;

  /** Checks that nothing is null. */
  public NvtxAttributes {
    Objects.requireNonNull(message, "message");
  }
}
