package io.cuvette;

import io.cuvette.driver.CompilerException;
import io.cuvette.driver.LinkerCalls;
import io.cuvette.internal.program.Linkage;
import java.util.List;
import java.util.Objects;

/**
 * Links code for one architecture: what was compiled apart, so that each may call functions of the
 * others, and LTO-IR, which is compiled only then. nvJitLink does it, a library of the CUDA toolkit
 * that is looked for and loaded by the first {@link #link}; no GPU and no driver is needed. Where
 * it is missing, the driver's own linker does (cuLinkCreate), which needs a GPU and links no
 * LTO-IR. Nothing is open between calls. Immutable, so that any thread may link, also several at
 * once.
 *
 * @param options how code is linked
 */
public record CudaLinker(LinkerOptions options) {

  /** A linker; nothing is linked yet. */
  public CudaLinker {
    Objects.requireNonNull(options, "options");
  }

  /**
   * {@return the inputs linked} The log has warnings, and what {@link LinkerOptions#withVerbose}
   * asks for. Names of expressions that the inputs know are known of the result.
   *
   * @param kind CUBIN, or PTX if all inputs are LTO-IR
   * @param inputs what is linked, in this order: PTX, cubins and objects compiled with {@link
   *     CompilerOptions#withRelocatableCode}, LTO-IR, fatbins, libraries
   * @throws IllegalArgumentException if there is no input, for another kind, or for PTX of inputs
   *     that are not LTO-IR
   * @throws CompilerException if the inputs cannot be linked; it has the log
   * @throws UnsupportedOperationException if nvJitLink is missing, with where it was looked for and
   *     what to install, and the driver cannot link it either
   */
  public KernelCode link(KernelCode.Kind kind, List<KernelCode> inputs) {
    Objects.requireNonNull(kind, "kind");
    List<KernelCode> all = List.copyOf(Objects.requireNonNull(inputs, "inputs"));
    return linkByFirst(kind, all, LinkerCalls.all());
  }

  /** The same with the first linker that is there and can. */
  KernelCode linkByFirst(KernelCode.Kind kind, List<KernelCode> inputs, List<LinkerCalls> linkers) {
    UnsupportedOperationException missing = null;
    for (LinkerCalls calls : linkers) {
      try {
        return link(kind, inputs, calls);
      } catch (UnsupportedOperationException e) {
        missing =
            missing == null
                ? e
                : new UnsupportedOperationException(
                    missing.getMessage() + "; and " + e.getMessage(), missing);
      }
    }
    throw missing == null
        ? new UnsupportedOperationException("no linker; add io.cuvette.ffm (artifact cuvette-ffm)")
        : missing;
  }

  /** The same with a linker of its own, for tests. */
  KernelCode link(KernelCode.Kind kind, List<KernelCode> inputs, LinkerCalls calls) {
    return new Linkage(calls, kind, options, inputs).run();
  }
}
