package io.cuvette.internal.kernel;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelCalls;
import io.cuvette.internal.base.CudaVersion;
import io.cuvette.internal.program.CodeKinds;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Explains why the driver cannot use code: what the code is, and what the device is. Stateless. */
final class CodeFailures {
  /** What can be loaded, besides PTX. */
  private static final String WHOLE = "a cubin or a fatbin";

  private CodeFailures() {}

  /**
   * The same failure with what it means; as it is if that has nothing to do with the code.
   *
   * @param device the device for which the code was used; null when it was loaded for all
   */
  static CudaException explained(
      CudaException e, String code, Session session, @Nullable Device device) {
    return switch (e.status()) {
      case UNSUPPORTED_PTX_VERSION ->
          e.explained(
              ("the code is %s, which is newer than the driver, which has CUDA %s (expected: PTX of"
                   + " that CUDA or an older one; compile with an older toolkit or install a newer"
                   + " driver)")
                  .formatted(code, version(session)));
      case NO_BINARY_FOR_GPU ->
          e.explained(
              ("the code is %s, and there is %s (expected: a cubin of the device's architecture, or"
                      + " PTX of it or an older one)")
                  .formatted(code, devices(session, device)));
      case INVALID_PTX ->
          e.explained(
              ("the code is %s and does not compile for %s (expected: PTX as nvcc or NVRTC writes"
                      + " it, for that architecture or an older one)")
                  .formatted(code, devices(session, device)));
      case INVALID_IMAGE ->
          e.explained("the code is %s (expected: PTX, %s that is whole)".formatted(code, WHOLE));
      default -> e;
    };
  }

  /**
   * Checks code that the driver refused: what is no code at all is an argument that is wrong.
   *
   * @throws IllegalArgumentException if it is none that is known
   */
  static void checkKnown(byte[] image, CudaException refusal) {
    if (CodeKinds.find(image) == null) {
      IllegalArgumentException e = CodeKinds.unknown(image, WHOLE);
      e.addSuppressed(refusal);
      throw e;
    }
  }

  /**
   * Checks code that the driver took, which takes anything: driver 580 says that it has no kernels.
   *
   * @throws IllegalArgumentException if it is none that is known, and has no kernels
   */
  static void checkSome(byte[] image, KernelCalls driver, long library) {
    if (CodeKinds.find(image) == null && hasNone(driver, library)) {
      throw CodeKinds.unknown(image, WHOLE);
    }
  }

  private static boolean hasNone(KernelCalls driver, long library) {
    try {
      return driver.libraryGetKernelCount(library) == 0;
    } catch (CudaException e) {
      return e.status() == CudaStatus.INVALID_IMAGE; // else the driver is older than CUDA 12.4
    }
  }

  private static String version(Session session) {
    try {
      return CudaVersion.text(session.driver().devices().driverGetVersion());
    } catch (CudaException e) {
      return "?"; // what failed first is what is reported
    }
  }

  private static String devices(Session session, @Nullable Device device) {
    List<Device> all = device == null ? session.devices() : List.of(device);
    return String.join(", ", all.stream().map(CodeFailures::capability).toList());
  }

  private static String capability(Device device) {
    try {
      return "%s of compute capability %s".formatted(device, device.computeCapability());
    } catch (CudaException | IllegalStateException e) {
      return device.toString();
    }
  }
}
