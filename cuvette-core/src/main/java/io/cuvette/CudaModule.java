package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.kernel.OpenModule;
import io.cuvette.internal.program.Texts;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;

/**
 * Code with kernels, loaded once and for all devices (CUlibrary). Thread-safe.
 *
 * <p>A module that is closed while launches of its kernels are in flight, or that a captured graph
 * has one of, is unloaded behind them. Its kernels keep it reachable.
 */
public final class CudaModule implements AutoCloseable {
  private final Cuda cuda;
  private final OpenModule core;

  private CudaModule(Cuda cuda, OpenModule core) {
    this.cuda = cuda;
    this.core = core;
  }

  /**
   * {@return a module of code; the caller closes it (cuLibraryLoadData)}
   *
   * @param cuda the library to load it with
   * @param image PTX, a cubin or a fatbin
   * @throws IllegalArgumentException if there are no bytes, nothing that is code, or PTX with a 0
   *     before its end
   * @throws CudaException if the driver reports an error: what it means for the code, such as PTX
   *     for a newer driver or code for another architecture, is in the message
   */
  public static CudaModule load(Cuda cuda, byte[] image) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(image, "image");
    return new CudaModule(cuda, OpenModule.load(cuda.engine().modules(), image));
  }

  /**
   * {@return the module that all who ask for a name share} For libraries that bring kernels of
   * their own: it is loaded when it is first asked for, and ends with the {@link Cuda}; closing it
   * does nothing. (cuLibraryLoadData)
   *
   * @param cuda the library to load it with
   * @param name the name, such as that of the class whose kernels they are
   * @param image gives PTX, a cubin or a fatbin; called by each thread that finds the module not
   *     loaded yet, while no lock is held
   * @throws IllegalArgumentException if there are no bytes, or nothing that is code
   * @throws CudaException if the driver reports an error
   */
  public static CudaModule shared(Cuda cuda, String name, Supplier<byte[]> image) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(image, "image");
    return new CudaModule(cuda, cuda.engine().modules().shared().get(name, image));
  }

  /**
   * {@return a module of compiled code; the caller closes it (cuLibraryLoadData)}
   *
   * @param cuda the library to load it with
   * @param code PTX, a cubin or a fatbin
   * @throws IllegalArgumentException if it is LTO-IR or an object, which are linked first
   * @throws CudaException if the driver reports an error
   */
  public static CudaModule load(Cuda cuda, KernelCode code) {
    Objects.requireNonNull(code, "code");
    return switch (code.kind()) {
      case PTX, CUBIN, FATBIN -> load(cuda, code.bytes());
      case LTOIR, OBJECT, LIBRARY ->
          throw new IllegalArgumentException(
              "code: %s (expected: PTX, CUBIN or FATBIN; link it first)".formatted(code.kind()));
    };
  }

  /**
   * {@return a module of the code in a file; the caller closes it (cuLibraryLoadData)}
   *
   * @param cuda the library to load it with
   * @param file PTX, a cubin or a fatbin
   * @throws UncheckedIOException if the file cannot be read
   * @throws IllegalArgumentException if it is empty, or nothing that is code
   * @throws CudaException if the driver reports an error
   */
  public static CudaModule load(Cuda cuda, Path file) {
    Objects.requireNonNull(cuda, "cuda");
    Objects.requireNonNull(file, "file");
    try {
      return load(cuda, Files.readAllBytes(file));
    } catch (IOException e) {
      throw new UncheckedIOException("file: %s (expected: one to read): %s".formatted(file, e), e);
    }
  }

  /**
   * {@return a kernel by its name in the code, mangled unless it has C linkage
   * (cuLibraryGetKernel)} The driver loads code when it is first asked about a kernel, and waits
   * for the device's work before: get kernels before callbacks hold streams, or beside nothing
   * urgent.
   *
   * @param name the name
   * @throws IllegalArgumentException if it has a character 0, or half of a surrogate pair
   * @throws IllegalStateException if the module is closed, or a kernel that is new is asked for
   *     inside a callback
   * @throws CudaException if the driver reports an error: NOT_FOUND, with the names that there are
   */
  public CudaKernel kernel(String name) {
    return new CudaKernel(this, core.kernel(Texts.check("name", name)));
  }

  /**
   * {@return the names of the kernels, sorted (cuLibraryEnumerateKernels, CUDA 12.4)}
   *
   * @throws IllegalStateException if the module is closed
   * @throws CudaException if the driver reports an error, or is older than CUDA 12.4
   */
  public List<String> kernelNames() {
    return core.kernelNames();
  }

  /** {@return the library it was loaded with} */
  public Cuda cuda() {
    return cuda;
  }

  /** {@return whether the module is closed} */
  public boolean isClosed() {
    return core.isClosed();
  }

  /**
   * Ends the module: nothing of it is launched any more, and it is unloaded once the launches so
   * far are done (cuLibraryUnload). Does nothing the second time.
   *
   * @throws CudaException if the driver reports an error
   */
  @Override
  public void close() {
    core.close();
  }

  @Override
  public String toString() {
    return core.toString();
  }
}
