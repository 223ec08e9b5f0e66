package io.cuvette.internal.interop;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MathLibrary;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.DriverStream;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One handle of a library, and what it was told last. Used by one thread at a time; it is destroyed
 * once, whoever does it.
 */
public final class DriverHandle {
  public final MathLibrary library;
  final Device device;
  private final Once destroyed = new Once();
  private long handle;
  private @Nullable OpenStream bound;
  private @Nullable Workspace workspace;

  /** What the library was told last; null if others may have told it something else. */
  private @Nullable Told told;

  /** Whether others have the handle, for calls that are not seen here. */
  private volatile boolean isOut;

  private record Told(DriverStream stream, long address, long bytes) {
    static Told of(DriverStream stream, @Nullable Workspace given) {
      return given == null
          ? new Told(stream, 0, 0)
          : new Told(stream, given.address(), given.bytes());
    }
  }

  DriverHandle(MathLibrary library, Device device) {
    this.library = library;
    this.device = device;
  }

  /** Creates the handle. */
  void create() {
    handle = device.context().math().mathHandleCreate(library, device.id());
  }

  /** The handle of the library, for calls that are seen here. */
  public long handle() {
    return handle;
  }

  /**
   * The same for others, who queue work in the stream and can tell the library what they want.
   *
   * @throws IllegalStateException if the stream is closed
   */
  public long giveOut() {
    OpenStream to = stream();
    CudaDriver _ = to.hold();
    try {
      to.state.exposeHeld();
      isOut = true;
      return handle;
    } finally {
      to.unhold();
    }
  }

  /** The size of the memory it was given; 0 for that of the library. */
  public long workspaceBytes() {
    return workspace == null ? 0 : workspace.bytes();
  }

  /** The stream that it is bound to. */
  public OpenStream stream() {
    return Objects.requireNonNull(bound, "stream");
  }

  boolean isBoundTo(OpenStream to) {
    OpenStream known = bound;
    return known != null && known.state == to.state;
  }

  /** Whether the library knows the stream from before. */
  boolean wasBoundTo(OpenStream to) {
    Told before = told;
    return before != null && before.stream == to.state;
  }

  /**
   * Has the library queue its work in a stream, and work in memory of that stream. The stream that
   * it was bound to before keeps its memory until this has worked.
   *
   * @param bytes the size of the workspace; 0 for that of the library
   */
  void bind(OpenStream to, long bytes, Workspace.Source source) {
    boolean own = bytes > 0 && library.takesWorkspace();
    Workspace given = own ? source.allocate(bytes, to) : null;
    bound = null;
    try {
      CudaDriver driver = to.hold();
      try {
        tell(driver, Told.of(to.state, given));
      } finally {
        to.unhold();
      }
    } catch (RuntimeException | Error e) {
      if (given != null) {
        Failures.runAfter(e, given.free());
      }
      throw e;
    }
    bound = to;
    Workspace before = workspace;
    workspace = given;
    if (before != null) {
      before.free().run();
    }
  }

  /** Nothing is told twice: the same memory comes back to who uses the same stream again. */
  private void tell(CudaDriver driver, Told now) {
    if (now.equals(told) && !isOut) {
      return;
    }
    told = null;
    device
        .session()
        .<@Nullable Void>ask(_ -> {
          driver.math().mathHandleSetStream(library, device.id(), handle, now.stream.handle);
          if (now.bytes > 0) {
            driver.math().mathHandleSetWorkspace(device.id(), handle, now.address, now.bytes);
          }
          return null;
        });
    told = now;
  }

  /** Gives the memory back that the library works in; nothing may be called with it any more. */
  void unbind() {
    bound = null;
    if (isOut) {
      told = null;
      isOut = false;
    }
    Workspace given = workspace;
    workspace = null;
    if (given != null) {
      given.free().run();
    }
  }

  void destroy() {
    destroyed.free(
        () -> device.session().driver().math().mathHandleDestroy(library, device.id(), handle));
  }

  @Override
  public String toString() {
    return "handle 0x%x of %s for %s".formatted(handle, library, device);
  }
}
