package io.cuvette.internal.kernel;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelCalls;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.program.CodeKinds;
import io.cuvette.internal.program.CodeText;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A library of kernels as the engine knows it, for all devices. It ends also when it is forgotten;
 * its kernels keep it reachable. Thread-safe.
 */
public final class OpenModule {
  final LoadedModule ending;
  final Session session;

  /** What the code is, for messages. */
  private final String code;

  private final Map<String, OpenKernel> kernels = new ConcurrentHashMap<>();

  /** Whether it is kept until the session ends. */
  private final boolean isShared;

  private OpenModule(Modules modules, long library, byte[] image, boolean isShared) {
    this.session = modules.session;
    this.isShared = isShared;
    this.code = CodeText.of(image);
    this.ending =
        new LoadedModule(
            this,
            modules,
            library,
            "module 0x%x of %d bytes of code".formatted(library, image.length),
            isShared);
  }

  /** Loads code (cuLibraryLoadData). */
  public static OpenModule load(Modules modules, byte[] image) {
    return load(modules, image, false);
  }

  /** Loads code, which is kept until the session ends if it is shared. */
  static OpenModule load(Modules modules, byte[] image, boolean isShared) {
    Session session = modules.session;
    session.checkOpen();
    if (image.length == 0) {
      throw new IllegalArgumentException("image: 0 bytes (expected: PTX, a cubin or a fatbin)");
    }
    CodeKinds.checkText(image);
    session.leaks().drain();
    return session.gate().make(() -> registered(modules, loaded(session, image), image, isShared));
  }

  private static long loaded(Session session, byte[] image) {
    KernelCalls driver = session.driver().kernels();
    long library;
    try {
      library = driver.libraryLoadData(image);
    } catch (CudaException e) {
      CodeFailures.checkKnown(image, e);
      throw CodeFailures.explained(e, CodeText.of(image), session, null);
    }
    try {
      CodeFailures.checkSome(image, driver, library);
    } catch (RuntimeException | OutOfMemoryError e) {
      unloadAfter(e, driver, library);
      throw e;
    }
    return library;
  }

  /** Without need for Java heap. */
  private static void unloadAfter(Throwable failure, KernelCalls driver, long library) {
    try {
      driver.libraryUnload(library);
    } catch (RuntimeException e) {
      Failures.joined(failure, e);
    }
  }

  /** The driver gets the library back if there is no Java heap for it. */
  private static OpenModule registered(
      Modules modules, long library, byte[] image, boolean isShared) {
    try {
      OpenModule module = new OpenModule(modules, library, image, isShared);
      module.ending.listed();
      return module;
    } catch (OutOfMemoryError e) {
      unloadAfter(e, modules.session.driver().kernels(), library);
      throw e;
    }
  }

  /** Says what a failure means for the code; the driver may notice when it is first used. */
  CudaException explained(CudaException e, @Nullable Device device) {
    return CodeFailures.explained(e, code, session, device);
  }

  /** A kernel by its name in the code (cuLibraryGetKernel). */
  public OpenKernel kernel(String name) {
    OpenKernel known = kernels.get(name);
    if (known != null) {
      ending.checkOpen();
      return known;
    }
    checkOutsideCallback(name);
    OpenKernel found = ask(driver -> found(driver.kernels(), name));
    OpenKernel before = kernels.putIfAbsent(name, found);
    return before == null ? found : before;
  }

  /** The driver loads code at its first question, and waits for the device's work before. */
  private void checkOutsideCallback(String name) {
    ending.checkOpen();
    if (session.isInsideCallback()) {
      throw new IllegalStateException(
          ("kernel: %s is not loaded yet, and inside a callback its loading would wait for the"
                  + " callback (expected: a kernel that was got before)")
              .formatted(name));
    }
  }

  private OpenKernel found(KernelCalls driver, String name) {
    long kernel;
    try {
      kernel = driver.libraryGetKernel(ending.library(), name);
    } catch (CudaException e) {
      throw e.status() == CudaStatus.NOT_FOUND ? notFound(e, driver, name) : explained(e, null);
    }
    try {
      return new OpenKernel(this, kernel, name, Parameters.of(driver, kernel));
    } catch (CudaException e) {
      throw explained(e, null);
    }
  }

  private CudaException notFound(CudaException e, KernelCalls driver, String name) {
    List<String> names;
    try {
      names = names(driver);
    } catch (CudaException unknown) {
      return e.explained("the module has no kernel %s".formatted(name));
    }
    String mangled = name.length() + name;
    List<String> like = names.stream().filter(each -> each.contains(mangled)).toList();
    return e.explained(
        "the module has no kernel %s (expected: one of %s)%s"
            .formatted(
                name,
                names,
                like.isEmpty()
                    ? ""
                    : "; %s is its name in C++: declare it extern \"C\", or use that name"
                        .formatted(String.join(" or ", like))));
  }

  /** The names of the kernels, sorted (cuLibraryEnumerateKernels, CUDA 12.4). */
  public List<String> kernelNames() {
    try {
      return ask(driver -> names(driver.kernels()));
    } catch (CudaException e) {
      throw explained(e, null);
    }
  }

  private List<String> names(KernelCalls driver) {
    List<String> names = new ArrayList<>();
    int count = driver.libraryGetKernelCount(ending.library());
    if (count > 0) {
      for (long kernel : driver.libraryEnumerateKernels(ending.library(), count)) {
        names.add(driver.kernelGetName(kernel));
      }
    }
    return names.stream().sorted().toList();
  }

  /** Asks the driver something about the library, which is not unloaded meanwhile. */
  <T extends @Nullable Object> T ask(Function<CudaDriver, T> question) {
    session.checkOpen();
    ending.hold();
    try {
      return session.ask(question);
    } finally {
      unhold();
    }
  }

  void unhold() {
    try {
      ending.unhold();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  public boolean isClosed() {
    return ending.ended();
  }

  /** Does nothing for one that is shared. */
  public void close() {
    if (!isShared) {
      ending.close(this);
    }
  }

  @Override
  public String toString() {
    return ending.describe();
  }
}
