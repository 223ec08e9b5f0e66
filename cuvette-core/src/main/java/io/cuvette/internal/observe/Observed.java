package io.cuvette.internal.observe;

import io.cuvette.driver.NvtxAttributes;
import io.cuvette.driver.NvtxCalls;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One domain of marks and ranges, as the tool and the flight recorder are shown them. Thread-safe.
 *
 * <p>Where neither listens a mark costs two branches, and a range the count of its thread's ranges.
 * The ranges of a virtual thread are started and ended for the tool instead of pushed and popped:
 * the tool knows OS threads alone, and the thread may end a range on another one.
 */
public final class Observed {
  private final String name;
  private final @Nullable NvtxCalls tool;
  private final long handle;
  private final ThreadLocal<OpenRanges> ranges = ThreadLocal.withInitial(OpenRanges::new);

  /**
   * A domain.
   *
   * @param name its name; empty for the default one
   * @param tool null if no tool listens
   */
  public Observed(String name, @Nullable NvtxCalls tool) {
    this.name = name;
    this.tool = tool;
    this.handle = tool == null || name.isEmpty() ? 0 : tool.domainCreate(text(name));
  }

  /** The name of the domain; empty for the default one. */
  public String name() {
    return name;
  }

  /** A text as C takes it: there it ends with a 0, so another character stands for that. */
  public static String text(String text) {
    return text.indexOf('\0') < 0 ? text : text.replace('\0', '\u2400');
  }

  /** The handle of a text; 0 if no tool has one. */
  public long register(String text) {
    return tool == null ? 0 : tool.domainRegisterString(handle, text(text));
  }

  /** Names a category. */
  public void nameCategory(int category, String text) {
    if (tool != null) {
      tool.domainNameCategory(handle, category, text(text));
    }
    named(() -> "category " + category + (name.isEmpty() ? "" : " of " + name), text);
  }

  /** Shows the recorder a name. */
  public static void named(Supplier<String> what, String name) {
    NameEvent event = new NameEvent();
    if (event.isEnabled()) {
      event.named = what.get();
      event.name = name;
      event.commit();
    }
  }

  /** Marks this moment; what is shown is asked for only if it is. */
  public void mark(Supplier<NvtxAttributes> shown) {
    MarkEvent event = new MarkEvent();
    boolean recorded = event.isEnabled();
    if (tool == null && !recorded) {
      return;
    }
    NvtxAttributes attributes = shown.get();
    if (tool != null) {
      tool.domainMark(handle, attributes);
    }
    if (recorded) {
      event.fill(name, attributes);
      event.commit();
    }
  }

  /** Begins a range of this thread; how many are around it. */
  public int push(Supplier<NvtxAttributes> shown) {
    OpenRanges mine = ranges.get();
    int depth = mine.depth();
    RangeEvent event = new RangeEvent();
    boolean recorded = event.isEnabled();
    if (tool == null && !recorded) {
      mine.push(null);
      return depth;
    }
    OpenRange range = new OpenRange(recorded ? event : null);
    mine.push(range);
    boolean shownToTool = false;
    try {
      NvtxAttributes attributes = shown.get();
      if (recorded) {
        event.fill(name, attributes, depth);
      }
      begin(range, attributes, !Thread.currentThread().isVirtual());
      shownToTool = true;
    } finally {
      if (!shownToTool) {
        mine.pop();
      }
    }
    return depth;
  }

  /**
   * Ends the innermost range of this thread; how many were around it.
   *
   * @throws IllegalStateException if none is open
   */
  public int pop() {
    OpenRanges mine = ranges.get();
    if (mine.depth() == 0) {
      throw new IllegalStateException(
          "rangePop: %s has no open range%s (expected: a rangePush of this thread before)"
              .formatted(Thread.currentThread(), name.isEmpty() ? "" : " in domain " + name));
    }
    OpenRange range = mine.pop();
    if (range != null) {
      end(range);
    }
    return mine.depth();
  }

  /** Begins a range that any thread may end; null if nobody listens. */
  public @Nullable OpenRange start(Supplier<NvtxAttributes> shown) {
    RangeEvent event = new RangeEvent();
    boolean recorded = event.isEnabled();
    if (tool == null && !recorded) {
      return null;
    }
    OpenRange range = new OpenRange(recorded ? event : null);
    NvtxAttributes attributes = shown.get();
    if (recorded) {
      event.fill(name, attributes, -1);
    }
    begin(range, attributes, false);
    return range;
  }

  private void begin(OpenRange range, NvtxAttributes attributes, boolean ofThread) {
    if (tool != null && ofThread) {
      tool.domainRangePush(handle, attributes);
      range.pushed = true;
    } else if (tool != null) {
      range.number = tool.domainRangeStart(handle, attributes);
    }
    if (range.event != null) {
      range.event.begin();
    }
  }

  /** Ends a range, once. */
  public void end(OpenRange range) {
    RangeEvent event = range.event;
    if (event != null) {
      event.end();
    }
    if (tool != null && range.pushed) {
      tool.domainRangePop(handle);
    } else if (tool != null) {
      tool.domainRangeEnd(handle, range.number);
    }
    if (event != null && event.shouldCommit()) {
      event.commit();
    }
  }
}
