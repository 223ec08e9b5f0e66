package io.cuvette.ffm.toolkit;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;

import io.cuvette.driver.CompilerCalls;
import io.cuvette.driver.CompilerException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** NVRTC through the Foreign Function and Memory API. Thread-safe. */
public final class FfmCompiler implements CompilerCalls {
  private static final OnFirstUse<Nvrtc> LOADED = new OnFirstUse<>(Nvrtc::load);
  private static final int MOST_ARCHITECTURES = 1_000;

  private final OnFirstUse<Nvrtc> nvrtc;

  /** For the service loader; loads nothing. */
  public FfmCompiler() {
    this(LOADED);
  }

  FfmCompiler(OnFirstUse<Nvrtc> nvrtc) {
    this.nvrtc = nvrtc;
  }

  private void check(String call, ToolLibrary.StatusCall function) {
    Nvrtc loaded = nvrtc.get();
    loaded.library.check(call, loaded::statusName, function);
  }

  private byte[] bytes(String call, MethodHandle size, MethodHandle get, long program) {
    Nvrtc loaded = nvrtc.get();
    return loaded.library.bytes(call, loaded::statusName, size, get, program);
  }

  @Override
  public String library() {
    return nvrtc.get().library.file();
  }

  @Override
  public int version() {
    return nvrtc.get().version;
  }

  @Override
  public List<Integer> supportedArchitectures() {
    Nvrtc loaded = nvrtc.get();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment count = arena.allocate(INT);
      check(
          "nvrtcGetNumSupportedArchs()", () -> (int) loaded.countArchitectures.invokeExact(count));
      int known = count.get(INT, 0);
      if (known < 1 || known > MOST_ARCHITECTURES) {
        throw new CompilerException(
            "nvrtcGetNumSupportedArchs()",
            0,
            "%d architectures (expected: 1 to %d)".formatted(known, MOST_ARCHITECTURES),
            "");
      }
      MemorySegment numbers = arena.allocate(INT, known);
      check("nvrtcGetSupportedArchs()", () -> (int) loaded.getArchitectures.invokeExact(numbers));
      List<Integer> found = new ArrayList<>();
      for (int i = 0; i < known; i++) {
        found.add(numbers.getAtIndex(INT, i));
      }
      return List.copyOf(found);
    }
  }

  @Override
  public long createProgram(String source, String name, Map<String, String> headers) {
    Nvrtc loaded = nvrtc.get();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment program = arena.allocate(POINTER);
      MemorySegment text = arena.allocateFrom(source);
      MemorySegment called = arena.allocateFrom(name);
      List<String> names = List.copyOf(headers.keySet());
      MemorySegment sources = ToolLibrary.texts(arena, names.stream().map(headers::get).toList());
      MemorySegment includeNames = ToolLibrary.texts(arena, names);
      int count = names.size();
      check(
          "nvrtcCreateProgram(name=%s, headers=%s)".formatted(name, names),
          () ->
              (int) loaded.create.invokeExact(program, text, called, count, sources, includeNames));
      return program.get(POINTER, 0);
    }
  }

  @Override
  public void destroyProgram(long program) {
    Nvrtc loaded = nvrtc.get();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment handle = arena.allocateFrom(POINTER, program);
      check(
          "nvrtcDestroyProgram(program=%#x)".formatted(program),
          () -> (int) loaded.destroy.invokeExact(handle));
    }
  }

  @Override
  public void addNameExpression(long program, String expression) {
    Nvrtc loaded = nvrtc.get();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(expression);
      check(
          "nvrtcAddNameExpression(program=%#x, expression=%s)".formatted(program, expression),
          () -> (int) loaded.addNameExpression.invokeExact(program, text));
    }
  }

  @Override
  public void compileProgram(long program, List<String> options) {
    Nvrtc loaded = nvrtc.get();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment texts = ToolLibrary.texts(arena, options);
      int count = options.size();
      check(
          "nvrtcCompileProgram(options=%s)".formatted(options),
          () -> (int) loaded.compile.invokeExact(program, count, texts));
    }
  }

  @Override
  public String getProgramLog(long program) {
    Nvrtc loaded = nvrtc.get();
    return ToolLibrary.text(bytes("nvrtcGetProgramLog", loaded.logSize, loaded.log, program));
  }

  @Override
  public byte[] getPtx(long program) {
    Nvrtc loaded = nvrtc.get();
    return ToolLibrary.withoutZero(bytes("nvrtcGetPTX", loaded.ptxSize, loaded.ptx, program));
  }

  @Override
  public byte[] getCubin(long program) {
    Nvrtc loaded = nvrtc.get();
    return bytes("nvrtcGetCUBIN", loaded.cubinSize, loaded.cubin, program);
  }

  @Override
  public byte[] getLtoIr(long program) {
    Nvrtc loaded = nvrtc.get();
    return bytes("nvrtcGetLTOIR", loaded.ltoIrSize, loaded.ltoIr, program);
  }

  @Override
  public String getLoweredName(long program, String expression) {
    Nvrtc loaded = nvrtc.get();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(expression);
      MemorySegment name = arena.allocate(POINTER);
      check(
          "nvrtcGetLoweredName(program=%#x, expression=%s)".formatted(program, expression),
          () -> (int) loaded.loweredName.invokeExact(program, text, name));
      return ToolLibrary.text(name.get(POINTER, 0));
    }
  }
}
