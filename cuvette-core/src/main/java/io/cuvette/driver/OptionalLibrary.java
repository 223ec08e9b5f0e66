package io.cuvette.driver;

import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * A library that Cuvette or its users can do without: where it is, and what to install where it is
 * not. It is looked for by the names of files where the dynamic loader looks, and in the toolkit of
 * CUDA; nothing is loaded. Immutable.
 *
 * @param title what it is called
 * @param file what its file starts with on Linux
 * @param windowsFile what its file starts with on Windows
 * @param install what to install if it is missing
 */
public record OptionalLibrary(String title, String file, String windowsFile, String install) {
  private static final String TOOLKIT = " of the CUDA toolkit, or pip install nvidia-";

  /** The runtime of CUDA. */
  public static final OptionalLibrary CUDART =
      new OptionalLibrary(
          "libcudart", "libcudart.so", "cudart64_", "cuda-cudart" + TOOLKIT + "cuda-runtime");

  /** Linear algebra. */
  public static final OptionalLibrary CUBLAS =
      new OptionalLibrary("cuBLAS", "libcublas.so", "cublas64_", "libcublas" + TOOLKIT + "cublas");

  /** Solvers for linear systems. */
  public static final OptionalLibrary CUSOLVER =
      new OptionalLibrary(
          "cuSOLVER", "libcusolver.so", "cusolver64_", "libcusolver" + TOOLKIT + "cusolver");

  /** Random numbers. */
  public static final OptionalLibrary CURAND =
      new OptionalLibrary("cuRAND", "libcurand.so", "curand64_", "libcurand" + TOOLKIT + "curand");

  /** The compiler for CUDA C++. */
  public static final OptionalLibrary NVRTC =
      new OptionalLibrary(
          "NVRTC", "libnvrtc.so", "nvrtc64_", "cuda-nvrtc" + TOOLKIT + "cuda-nvrtc");

  /** The linker for code of devices. */
  public static final OptionalLibrary NVJITLINK =
      new OptionalLibrary(
          "nvJitLink", "libnvJitLink.so", "nvJitLink_", "libnvjitlink" + TOOLKIT + "nvjitlink");

  /** Marks and ranges for tools. */
  public static final OptionalLibrary NVTX =
      new OptionalLibrary(
          "NVTX", "libnvtx3interop.so", "nvtx3interop", "cuda-nvtx" + TOOLKIT + "nvtx");

  /** All of them. Unmodifiable. */
  public static final List<OptionalLibrary> ALL =
      List.of(CUDART, CUBLAS, CUSOLVER, CURAND, NVRTC, NVJITLINK, NVTX);

  /** Checks that nothing is null. */
  public OptionalLibrary {
    Objects.requireNonNull(title, "title");
    Objects.requireNonNull(file, "file");
    Objects.requireNonNull(windowsFile, "windowsFile");
    Objects.requireNonNull(install, "install");
  }

  /** {@return the newest file of the library in the first folder that has one} */
  public Optional<Path> find() {
    return LibrarySearch.here().find(this);
  }

  /** {@return where {@link #find} looks, in that order} Unmodifiable. */
  public static List<Path> folders() {
    return LibrarySearch.here().folders();
  }

  /** {@return what is wrong where the library is missing, and what to do about it} */
  public String missing() {
    return "%s is missing: no file %s* in %s; install %s"
        .formatted(
            title,
            LibrarySearch.here().start(this),
            folders().stream().map(Path::toString).collect(Collectors.joining(", ")),
            install);
  }
}
