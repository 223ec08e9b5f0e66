package io.cuvette;

import io.cuvette.driver.NvtxCalls;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.observe.Observed;
import io.cuvette.internal.observe.OpenRange;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Marks and ranges that tools keep apart from those of other domains, such as those of a library.
 * {@link Nvtx#domain} gives it, the same for the same name; it lasts as long as the process. What
 * {@link Nvtx} says of threads and of costs holds here. Thread-safe.
 */
public final class NvtxDomain {
  private final Observed observed;

  NvtxDomain(String name, @Nullable NvtxCalls tool) {
    this.observed = new Observed(name, tool);
  }

  /** {@return the name; empty for the default domain} */
  public String name() {
    return observed.name();
  }

  /**
   * Names a category of this domain, by which tools group and filter (nvtxDomainNameCategoryA).
   *
   * @param number the number of the category, >= 1
   * @param name its name
   * @return the category, for {@link NvtxEvent#category}
   * @throws IllegalArgumentException if the number is not positive
   */
  public NvtxCategory category(int number, String name) {
    Checks.inRange("number", number, 1, Integer.MAX_VALUE);
    Objects.requireNonNull(name, "name");
    observed.nameCategory(number, name);
    return new NvtxCategory(this, number, name);
  }

  /**
   * Registers a text that is shown often, so that the tool is passed a number instead
   * (nvtxDomainRegisterStringA). The tool keeps it as long as the process lives.
   *
   * @param text the text
   * @return the registered text, for {@link NvtxEvent#of(NvtxString)}
   */
  public NvtxString register(String text) {
    Objects.requireNonNull(text, "text");
    return new NvtxString(this, text, observed.register(text));
  }

  /**
   * Marks this moment (nvtxDomainMarkEx).
   *
   * @param message the text
   */
  public void mark(String message) {
    Objects.requireNonNull(message, "message");
    observed.mark(() -> NvtxEvent.of(message).attributes());
  }

  /**
   * Marks this moment (nvtxDomainMarkEx).
   *
   * @param event what is shown
   * @throws IllegalArgumentException if its text or category is of another domain
   */
  public void mark(NvtxEvent event) {
    check(event);
    observed.mark(event::attributes);
  }

  /**
   * Begins a range of this thread, inside those that are open (nvtxDomainRangePushEx).
   *
   * @param message the text
   * @return how many ranges of this thread and domain are around it
   */
  public int rangePush(String message) {
    Objects.requireNonNull(message, "message");
    return observed.push(() -> NvtxEvent.of(message).attributes());
  }

  /**
   * Begins a range of this thread, inside those that are open (nvtxDomainRangePushEx).
   *
   * @param event what is shown
   * @return how many ranges of this thread and domain are around it
   * @throws IllegalArgumentException if its text or category is of another domain
   */
  public int rangePush(NvtxEvent event) {
    check(event);
    return observed.push(event::attributes);
  }

  /**
   * Ends the innermost range of this thread (nvtxDomainRangePop).
   *
   * @return how many ranges of this thread and domain were around it
   * @throws IllegalStateException if no range of this thread and domain is open
   */
  public int rangePop() {
    return observed.pop();
  }

  /**
   * Begins a range that any thread may end, in any order (nvtxDomainRangeStartEx).
   *
   * @param message the text
   * @return the range, which the caller closes
   */
  public NvtxRange rangeStart(String message) {
    Objects.requireNonNull(message, "message");
    return started(observed.start(() -> NvtxEvent.of(message).attributes()));
  }

  /**
   * Begins a range that any thread may end, in any order (nvtxDomainRangeStartEx).
   *
   * @param event what is shown
   * @return the range, which the caller closes
   * @throws IllegalArgumentException if its text or category is of another domain
   */
  public NvtxRange rangeStart(NvtxEvent event) {
    check(event);
    return started(observed.start(event::attributes));
  }

  private NvtxRange started(@Nullable OpenRange range) {
    return new NvtxRange(observed, range);
  }

  private void check(NvtxEvent event) {
    Objects.requireNonNull(event, "event");
    checkMine("text", event.domainOfText());
    checkMine("category", event.domainOfCategory());
  }

  private void checkMine(String what, @Nullable NvtxDomain of) {
    if (of != null && !of.equals(this)) {
      throw new IllegalArgumentException("%s: of %s (expected: of %s)".formatted(what, of, this));
    }
  }

  @Override
  public String toString() {
    return name().isEmpty() ? "default domain" : "domain " + name();
  }
}
