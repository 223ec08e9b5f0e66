package io.cuvette;

import io.cuvette.driver.NvtxCalls;
import io.cuvette.internal.observe.NvtxTool;
import io.cuvette.internal.observe.Observed;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;

/**
 * Marks and ranges that Nsight Systems, Nsight Compute and other tools show beside the work of the
 * device (NVTX), in the default domain; {@link #domain} has others. Each is an event of the flight
 * recorder too: {@code io.cuvette.NvtxMark}, {@code NvtxRange} and {@code NvtxName}.
 *
 * <p>A tool is found when this class is first used: by the library libnvtx3interop where there is
 * one, else by the library that the environment names as NVTX_INJECTION64_PATH. Where no tool and
 * no recording listens, a mark costs a branch for each, and nested ranges are counted for their
 * thread alone, so that a {@link #rangePop} too many is an error at all times.
 *
 * <p>Nested ranges belong to the thread that begins them, also to a virtual one; for a tool, which
 * knows OS threads alone, those of virtual threads are ranges of no thread. A text may have any
 * characters; one with the number 0, at which C ends a text, is shown as U+2400.
 *
 * <p>Thread-safe.
 */
public final class Nvtx {
  /** No color: the tool chooses one. */
  public static final int NO_COLOR = -1;

  private static final int[] COLORS = {
    0xFF00FF00, 0xFF007FFF, 0xFF7F00FF, 0xFFFF0000, 0xFF7FFF00,
    0xFF00FF7F, 0xFF0000FF, 0xFFFF007F, 0xFFFF7F00, 0xFF7F7F7F
  };

  private static final @Nullable NvtxCalls TOOL = NvtxTool.find();
  private static final NvtxDomain DEFAULT = new NvtxDomain("", TOOL);
  private static final ConcurrentMap<String, NvtxDomain> DOMAINS = new ConcurrentHashMap<>();

  private Nvtx() {}

  /** {@return whether a tool listens} Recordings do not count. */
  public static boolean isListening() {
    return TOOL != null;
  }

  /** {@return the file of the library by which the tool is reached, if one listens} */
  public static Optional<String> library() {
    return Optional.ofNullable(TOOL).map(NvtxCalls::library);
  }

  /** {@return the domain that the methods of this class use} */
  public static NvtxDomain defaultDomain() {
    return DEFAULT;
  }

  /**
   * {@return the domain of a name, created if it is new (nvtxDomainCreateA)} It lasts as long as
   * the process: names should be few.
   *
   * @param name the name
   * @throws IllegalArgumentException if the name is blank
   */
  public static NvtxDomain domain(String name) {
    Objects.requireNonNull(name, "name");
    if (name.isBlank()) {
      throw new IllegalArgumentException(
          "name: '%s' (expected: not blank; Nvtx.defaultDomain() has no name)".formatted(name));
    }
    NvtxDomain known = DOMAINS.get(name);
    if (known == null) {
      NvtxDomain made = new NvtxDomain(name, TOOL);
      known = DOMAINS.putIfAbsent(name, made);
      return known == null ? made : known;
    }
    return known;
  }

  /**
   * {@return one of the ten colors of CuPy, as ARGB}
   *
   * @param colorId 0 to 9
   * @throws IllegalArgumentException for another number
   */
  public static int argb(int colorId) {
    if (checkColor(colorId) == NO_COLOR) {
      throw new IllegalArgumentException("colorId: -1 (expected: 0 to 9)");
    }
    return COLORS[colorId];
  }

  /**
   * Checks the number of a color.
   *
   * @throws IllegalArgumentException for another number
   */
  static int checkColor(int colorId) {
    if (colorId < NO_COLOR || colorId >= COLORS.length) {
      throw new IllegalArgumentException(
          "colorId: %d (expected: 0 to 9, or -1 for none; markC and rangePushC take ARGB)"
              .formatted(colorId));
    }
    return colorId;
  }

  /**
   * Marks this moment, without a color.
   *
   * @param message the text
   */
  public static void mark(String message) {
    DEFAULT.mark(message);
  }

  /**
   * Marks this moment.
   *
   * @param message the text
   * @param colorId 0 to 9, see {@link #argb}, or {@link #NO_COLOR}
   * @throws IllegalArgumentException for another color
   */
  public static void mark(String message, int colorId) {
    DEFAULT.mark(NvtxEvent.of(message).color(colorId));
  }

  /**
   * Marks this moment in a color.
   *
   * @param message the text
   * @param argb the color, 8 bits each: {@code 0xFFFF0000} is red, 0 transparent
   */
  public static void markC(String message, int argb) {
    DEFAULT.mark(NvtxEvent.of(message).colorC(argb));
  }

  /**
   * Begins a range of this thread, inside those that are open, without a color.
   *
   * @param message the text
   * @return how many ranges of this thread are around it
   */
  public static int rangePush(String message) {
    return DEFAULT.rangePush(message);
  }

  /**
   * Begins a range of this thread, inside those that are open.
   *
   * @param message the text
   * @param colorId 0 to 9, see {@link #argb}, or {@link #NO_COLOR}
   * @return how many ranges of this thread are around it
   * @throws IllegalArgumentException for another color
   */
  public static int rangePush(String message, int colorId) {
    return DEFAULT.rangePush(NvtxEvent.of(message).color(colorId));
  }

  /**
   * Begins a range of this thread, inside those that are open, in a color.
   *
   * @param message the text
   * @param argb the color, 8 bits each: {@code 0xFFFF0000} is red, 0 transparent
   * @return how many ranges of this thread are around it
   */
  public static int rangePushC(String message, int argb) {
    return DEFAULT.rangePush(NvtxEvent.of(message).colorC(argb));
  }

  /**
   * Ends the innermost range of this thread.
   *
   * @return how many ranges of this thread were around it
   * @throws IllegalStateException if no range of this thread is open
   */
  public static int rangePop() {
    return DEFAULT.rangePop();
  }

  /**
   * Begins a range that any thread may end, in any order.
   *
   * @param message the text
   * @return the range, which the caller closes
   */
  public static NvtxRange rangeStart(String message) {
    return DEFAULT.rangeStart(message);
  }

  /**
   * Begins a range that any thread may end, in any order, in a color.
   *
   * @param message the text
   * @param argb the color, 8 bits each: {@code 0xFFFF0000} is red, 0 transparent
   * @return the range, which the caller closes
   */
  public static NvtxRange rangeStartC(String message, int argb) {
    return DEFAULT.rangeStart(NvtxEvent.of(message).colorC(argb));
  }

  /**
   * Ends a range, as its {@code close} does.
   *
   * @param range the range
   */
  public static void rangeEnd(NvtxRange range) {
    Objects.requireNonNull(range, "range").close();
  }

  /**
   * Has tools show a stream under a name (nvtxNameCuStreamA).
   *
   * @param stream the stream
   * @param name the name
   * @throws IllegalStateException if the stream is closed
   */
  public static void name(CudaStream stream, String name) {
    Objects.requireNonNull(stream, "stream");
    Objects.requireNonNull(name, "name");
    stream.core().checkUsable();
    if (TOOL != null && !stream.device().cuda().isSimulated()) {
      TOOL.nameStream(stream.state.handle, Observed.text(name));
    }
    Observed.named(stream::toString, name);
  }

  /**
   * Has tools show a device under a name (nvtxNameCuDeviceA).
   *
   * @param device the device
   * @param name the name
   */
  public static void name(CudaDevice device, String name) {
    Objects.requireNonNull(device, "device");
    Objects.requireNonNull(name, "name");
    if (TOOL != null && !device.cuda().isSimulated()) {
      TOOL.nameDevice(device.id(), Observed.text(name));
    }
    Observed.named(device::toString, name);
  }
}
