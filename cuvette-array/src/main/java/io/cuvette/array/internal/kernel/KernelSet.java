package io.cuvette.array.internal.kernel;

import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Objects;
import java.util.zip.GZIPInputStream;

/**
 * The kernels of a {@link Cuda}. A module is loaded when the first of its kernels is wanted, and
 * ends with the Cuda. Stateless.
 */
public final class KernelSet {
  private KernelSet() {}

  /** A kernel, whose module is loaded if it is not yet. */
  public static CudaKernel kernel(Cuda cuda, KernelNames.Place place) {
    KernelTwins.register();
    String name = "io.cuvette.array " + place.module();
    return CudaModule.shared(cuda, name, () -> ptx(place.module())).kernel(place.kernel());
  }

  /** The code of a module. */
  static byte[] ptx(String module) {
    String name = "/io/cuvette/array/cuda/ptx/" + module + ".ptx.gz";
    try (InputStream packed =
            Objects.requireNonNull(KernelSet.class.getResourceAsStream(name), name);
        InputStream text = new GZIPInputStream(packed)) {
      return text.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(name, e);
    }
  }
}
