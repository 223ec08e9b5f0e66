package io.cuvette.internal.program;

import io.cuvette.KernelCode;
import io.cuvette.driver.CompilerCalls;
import io.cuvette.driver.CompilerException;
import io.cuvette.internal.base.CudaVersion;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * One program as it is compiled to one kind of code. Immutable.
 *
 * @param calls the compiler
 * @param kind what it is compiled to: PTX, CUBIN or LTOIR
 * @param source the source
 * @param name what messages call the source
 * @param arguments what the compiler is given
 * @param includeFolders where headers are
 * @param headers headers that are in no folder
 * @param nameExpressions the expressions whose names in the code are wanted
 * @param architecture such as sm_90, if one was given
 */
public record Compilation(
    CompilerCalls calls,
    KernelCode.Kind kind,
    String source,
    String name,
    List<String> arguments,
    List<Path> includeFolders,
    Map<String, String> headers,
    Set<String> nameExpressions,
    Optional<String> architecture) {
  private static final System.Logger LOG = System.getLogger("io.cuvette.compiler");

  /** Takes the code from a folder, or compiles and puts it there. */
  public KernelCode run(Optional<CodeFolder> folder) {
    check();
    Optional<String> key = folder.isPresent() ? key() : Optional.empty();
    Optional<KernelCode> kept = key.flatMap(k -> folder.flatMap(f -> f.get(k)));
    if (kept.isPresent()) {
      return kept.get();
    }
    KernelCode code = compile();
    // A header that changed meanwhile may or may not be in the code.
    if (key.isPresent() && key.equals(key())) {
      folder.ifPresent(f -> f.put(key.get(), code));
    }
    return code;
  }

  private void check() {
    architecture.ifPresent(name ->
        Architectures.check(
            Architectures.suffix(name), calls.supportedArchitectures(), compiler()));
    for (Path folder : includeFolders) {
      if (!Files.isDirectory(folder)) {
        throw new IllegalArgumentException(
            "include folder: %s (expected: a folder)".formatted(folder));
      }
    }
  }

  private String compiler() {
    return "NVRTC " + CudaVersion.text(calls.version());
  }

  /** What the code depends on; empty if that cannot be known. */
  private Optional<String> key() {
    try {
      CodeKey key = new CodeKey().with("compiler").with(calls.version());
      Path library = Path.of(calls.library());
      if (Files.isRegularFile(library)) {
        key.with(Files.size(library)).with(Files.getLastModifiedTime(library).toMillis());
      }
      key.with(kind.name()).with(source).with(name).with(arguments.size());
      arguments.forEach(key::with);
      key.with(nameExpressions.size());
      nameExpressions.forEach(key::with);
      key.with(headers.size());
      headers.forEach((header, text) -> key.with(header).with(text));
      return Headers.of(source, name, headers, includeFolders)
          .map(files -> {
            files.forEach((file, content) -> key.with(file.toString()).with(content));
            return key.end();
          });
    } catch (IOException e) {
      return Optional.empty(); // a header that cannot be read; the compiler says what it thinks
    }
  }

  private KernelCode compile() {
    long program = calls.createProgram(source, name, headers);
    try {
      nameExpressions.forEach(each -> calls.addNameExpression(program, each));
      compile(program);
      return code(program);
    } finally {
      destroy(program);
    }
  }

  private void compile(long program) {
    try {
      calls.compileProgram(program, arguments);
    } catch (CompilerException e) {
      String log;
      try {
        log = calls.getProgramLog(program);
      } catch (CompilerException second) {
        e.addSuppressed(second);
        throw e;
      }
      throw e.withLog(log);
    }
  }

  private KernelCode code(long program) {
    byte[] bytes =
        switch (kind) {
          case PTX -> calls.getPtx(program);
          case CUBIN -> calls.getCubin(program);
          default -> calls.getLtoIr(program);
        };
    String log = calls.getProgramLog(program);
    if (bytes.length == 0) {
      throw new CompilerException(
          "nvrtcCompileProgram(options=%s)".formatted(arguments),
          0,
          "the compiler reports success and gives no " + kind,
          log);
    }
    Map<String, String> names = new LinkedHashMap<>();
    for (String each : nameExpressions) {
      names.put(each, calls.getLoweredName(program, each));
    }
    return new KernelCode(kind, bytes, log, names);
  }

  /** The code is there, so a program that stays behind is worth a word and no more. */
  private void destroy(long program) {
    try {
      calls.destroyProgram(program);
    } catch (CompilerException e) {
      LOG.log(System.Logger.Level.WARNING, "a program of NVRTC is left behind", e);
    }
  }
}
