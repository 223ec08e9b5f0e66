package io.cuvette.internal.program;

import io.cuvette.KernelCode;
import io.cuvette.KernelCode.Kind;
import io.cuvette.LinkerOptions;
import io.cuvette.driver.CompilerException;
import io.cuvette.driver.LinkerCalls;
import io.cuvette.internal.base.CudaVersion;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Some code as it is linked to one kind of code. Immutable.
 *
 * @param calls the linker
 * @param kind what it is linked to: CUBIN or PTX
 * @param options how it is linked
 * @param inputs what is linked
 */
public record Linkage(
    LinkerCalls calls, Kind kind, LinkerOptions options, List<KernelCode> inputs) {
  private static final System.Logger LOG = System.getLogger("io.cuvette.compiler");

  /** NVJITLINK_ERROR_OUTDATED_LIBRARY, and what LTO-IR of a newer compiler is refused with. */
  private static final int OUTDATED = 14;

  private static final int NVVM = 5;

  /** Links. */
  public KernelCode run() {
    check();
    List<String> arguments = arguments();
    long linker = calls.create(arguments);
    try {
      for (int i = 0; i < inputs.size(); i++) {
        add(linker, inputs.get(i), "input %d of %d".formatted(i + 1, inputs.size()));
      }
      logged(linker, () -> calls.complete(linker));
      return code(linker, arguments);
    } finally {
      destroy(linker);
    }
  }

  private void check() {
    if (inputs.isEmpty()) {
      throw new IllegalArgumentException("inputs: none (expected: at least 1)");
    }
    if (kind != Kind.CUBIN && kind != Kind.PTX) {
      throw new IllegalArgumentException(
          "kind: %s (expected: CUBIN or PTX, which nvJitLink links to)".formatted(kind));
    }
    for (int i = 0; kind == Kind.PTX && i < inputs.size(); i++) {
      if (inputs.get(i).kind() != Kind.LTOIR) {
        throw new IllegalArgumentException(
            "inputs: %s at index %d (expected: LTOIR alone, to link to PTX)"
                .formatted(inputs.get(i).kind(), i));
      }
    }
  }

  private List<String> arguments() {
    List<String> all = new ArrayList<>(List.of("-arch=" + options.architecture()));
    if (inputs.stream().anyMatch(each -> each.kind() == Kind.LTOIR)) {
      all.add("-lto");
    }
    if (kind == Kind.PTX) {
      all.add("-ptx");
    }
    options.flags().forEach((flag, value) -> all.add(value.isEmpty() ? flag : flag + "=" + value));
    all.addAll(options.arguments());
    return all;
  }

  private void add(long linker, KernelCode input, String name) {
    logged(linker, () -> calls.addData(linker, type(input.kind()), input.bytes(), name));
  }

  /** An nvJitLinkInputType. */
  private static int type(Kind kind) {
    return switch (kind) {
      case CUBIN -> 1;
      case PTX -> 2;
      case LTOIR -> 3;
      case FATBIN -> 4;
      case OBJECT -> 5;
      case LIBRARY -> 6;
    };
  }

  private void logged(long linker, Runnable call) {
    try {
      call.run();
    } catch (CompilerException e) {
      String log;
      try {
        log = calls.getErrorLog(linker) + calls.getInfoLog(linker);
      } catch (CompilerException second) {
        e.addSuppressed(second);
        throw e;
      }
      throw e.withLog(e.code() == OUTDATED || e.code() == NVVM ? log + ages() : log);
    }
  }

  private String ages() {
    return "\nThis is nvJitLink %s, %s: it links what compilers up to this version make."
        .formatted(CudaVersion.text(calls.version()), calls.library());
  }

  private KernelCode code(long linker, List<String> arguments) {
    byte[] bytes = kind == Kind.PTX ? calls.getLinkedPtx(linker) : calls.getLinkedCubin(linker);
    String log = calls.getErrorLog(linker) + calls.getInfoLog(linker);
    if (bytes.length == 0) {
      throw new CompilerException(
          "linking with %s".formatted(arguments),
          0,
          "the linker reports success and gives no " + kind,
          log);
    }
    Map<String, String> names = new HashMap<>();
    inputs.forEach(each -> names.putAll(each.loweredNames()));
    return new KernelCode(kind, bytes, log, names);
  }

  /** The code is there, so a linker that stays behind is worth a word and no more. */
  private void destroy(long linker) {
    try {
      calls.destroy(linker);
    } catch (CompilerException e) {
      LOG.log(System.Logger.Level.WARNING, "a linker of " + calls.library() + " is left behind", e);
    }
  }
}
