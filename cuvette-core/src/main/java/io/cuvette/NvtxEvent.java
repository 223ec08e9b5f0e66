package io.cuvette;

import io.cuvette.driver.NvtxAttributes;
import io.cuvette.internal.observe.Observed;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What a mark or a range shows: a text, and if wanted a color, a category and a payload. Each
 * method gives a new one. Immutable.
 */
public final class NvtxEvent {
  private final String message;
  private final @Nullable NvtxString registered;
  private final @Nullable NvtxCategory category;
  private final @Nullable Integer argb;
  private final int payloadType;
  private final long payload;

  private NvtxEvent(
      String message,
      @Nullable NvtxString registered,
      @Nullable NvtxCategory category,
      @Nullable Integer argb,
      int payloadType,
      long payload) {
    this.message = message;
    this.registered = registered;
    this.category = category;
    this.argb = argb;
    this.payloadType = payloadType;
    this.payload = payload;
  }

  /**
   * {@return one that shows a text}
   *
   * @param message the text
   */
  public static NvtxEvent of(String message) {
    Objects.requireNonNull(message, "message");
    return new NvtxEvent(message, null, null, null, NvtxAttributes.NO_PAYLOAD, 0);
  }

  /**
   * {@return one that shows a registered text, for the domain of that}
   *
   * @param message the text
   */
  public static NvtxEvent of(NvtxString message) {
    Objects.requireNonNull(message, "message");
    return new NvtxEvent(message.text(), message, null, null, NvtxAttributes.NO_PAYLOAD, 0);
  }

  /**
   * {@return the same with one of the ten colors of {@link Nvtx#argb}, or without a color}
   *
   * @param colorId 0 to 9, or {@link Nvtx#NO_COLOR}
   * @throws IllegalArgumentException for another number
   */
  public NvtxEvent color(int colorId) {
    Integer color = Nvtx.checkColor(colorId) == Nvtx.NO_COLOR ? null : Nvtx.argb(colorId);
    return new NvtxEvent(message, registered, category, color, payloadType, payload);
  }

  /**
   * {@return the same with a color}
   *
   * @param color ARGB, 8 bits each: {@code 0xFFFF0000} is red
   */
  public NvtxEvent colorC(int color) {
    return new NvtxEvent(message, registered, category, color, payloadType, payload);
  }

  /**
   * {@return the same in a category, for the domain of that}
   *
   * @param group the category
   */
  public NvtxEvent category(NvtxCategory group) {
    Objects.requireNonNull(group, "group");
    return new NvtxEvent(message, registered, group, argb, payloadType, payload);
  }

  /**
   * {@return the same with a number, in place of the payload it may have}
   *
   * @param value the number
   */
  public NvtxEvent payload(long value) {
    return new NvtxEvent(message, registered, category, argb, NvtxAttributes.INT64, value);
  }

  /**
   * {@return the same with a number, in place of the payload it may have}
   *
   * @param value the number
   */
  public NvtxEvent payload(double value) {
    return new NvtxEvent(
        message, registered, category, argb, NvtxAttributes.DOUBLE, Double.doubleToLongBits(value));
  }

  /** {@return the text} */
  public String message() {
    return message;
  }

  @Nullable NvtxDomain domainOfText() {
    return registered == null ? null : registered.domain();
  }

  @Nullable NvtxDomain domainOfCategory() {
    return category == null ? null : category.domain();
  }

  /** What tools are passed. */
  NvtxAttributes attributes() {
    return new NvtxAttributes(
        Observed.text(message),
        registered == null ? 0 : registered.handle(),
        category == null ? 0 : category.number(),
        argb != null,
        argb == null ? 0 : argb,
        payloadType,
        payload);
  }

  @Override
  public String toString() {
    return message;
  }
}
