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
  private @Nullable DriverStream stream;
  private @Nullable OpenStream bound;
  private @Nullable Workspace workspace;

  DriverHandle(MathLibrary library, Device device) {
    this.library = library;
    this.device = device;
  }

  /** Creates the handle. */
  void create() {
    handle = device.context().math().mathHandleCreate(library, device.id());
  }

  /** The handle of the library. */
  public long handle() {
    return handle;
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
    return to.state == stream;
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
    stream = null;
    bound = null;
    try {
      CudaDriver driver = to.hold();
      try {
        to.state.exposeHeld(); // the library queues work that is not seen here
        device
            .session()
            .<@Nullable Void>ask(_ -> {
              driver.math().mathHandleSetStream(library, device.id(), handle, to.state.handle);
              if (given != null) {
                driver
                    .math()
                    .mathHandleSetWorkspace(device.id(), handle, given.address(), given.bytes());
              }
              return null;
            });
      } finally {
        to.unhold();
      }
    } catch (RuntimeException | Error e) {
      if (given != null) {
        Failures.closeAfter(e, given.free()::run);
      }
      throw e;
    }
    stream = to.state;
    bound = to;
    Workspace before = workspace;
    workspace = given;
    if (before != null) {
      before.free().run();
    }
  }

  /** Gives the memory back that the library works in; nothing may be called with it any more. */
  void unbind() {
    stream = null;
    bound = null;
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
