package io.cuvette.ffm.toolkit;

import static io.cuvette.ffm.link.Layouts.POINTER;

import io.cuvette.driver.CompilerException;
import io.cuvette.driver.LinkerCalls;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.List;

/** nvJitLink through the Foreign Function and Memory API. Thread-safe. */
public final class FfmLinker implements LinkerCalls {
  private static final OnFirstUse<NvJitLink> LOADED = new OnFirstUse<>(NvJitLink::load);

  private final OnFirstUse<NvJitLink> nvJitLink;

  /** For the service loader; loads nothing. */
  public FfmLinker() {
    this(LOADED);
  }

  FfmLinker(OnFirstUse<NvJitLink> nvJitLink) {
    this.nvJitLink = nvJitLink;
  }

  private void check(String call, ToolLibrary.StatusCall function) {
    nvJitLink.get().library.check(call, NvJitLink::statusName, function);
  }

  private byte[] bytes(String call, MethodHandle size, MethodHandle get, long linker) {
    return nvJitLink.get().library.bytes(call, NvJitLink::statusName, size, get, linker);
  }

  @Override
  public String library() {
    return nvJitLink.get().library.file();
  }

  @Override
  public int version() {
    return nvJitLink.get().version;
  }

  /** The library makes a linker for its log where it makes none for use. */
  @Override
  public long create(List<String> options) {
    NvJitLink loaded = nvJitLink.get();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment handle = arena.allocate(POINTER);
      MemorySegment texts = ToolLibrary.texts(arena, options);
      int count = options.size();
      int status = ToolLibrary.status(() -> (int) loaded.create.invokeExact(handle, count, texts));
      long linker = handle.get(POINTER, 0);
      if (status == 0) {
        return linker;
      }
      String log = linker == 0 ? "" : logOfFailed(linker);
      throw new CompilerException(
          "nvJitLinkCreate(options=%s)".formatted(options),
          status,
          NvJitLink.statusName(status),
          log);
    }
  }

  private String logOfFailed(long linker) {
    String log;
    try {
      log = getErrorLog(linker);
    } catch (CompilerException e) {
      log = e.toString();
    }
    try {
      destroy(linker);
      return log;
    } catch (CompilerException e) {
      return log + e;
    }
  }

  @Override
  public void destroy(long linker) {
    NvJitLink loaded = nvJitLink.get();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment handle = arena.allocateFrom(POINTER, linker);
      check(
          "nvJitLinkDestroy(linker=%#x)".formatted(linker),
          () -> (int) loaded.destroy.invokeExact(handle));
    }
  }

  /** The library reads one 0 behind PTX, which does no harm behind other inputs. */
  @Override
  public void addData(long linker, int type, byte[] data, String name) {
    NvJitLink loaded = nvJitLink.get();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment content = arena.allocate(data.length + 1L, Long.BYTES);
      MemorySegment.copy(data, 0, content, ValueLayout.JAVA_BYTE, 0, data.length);
      MemorySegment called = arena.allocateFrom(name);
      long bytes = data.length;
      check(
          "nvJitLinkAddData(linker=%#x, type=%d, bytes=%d, name=%s)"
              .formatted(linker, type, bytes, name),
          () -> (int) loaded.addData.invokeExact(linker, type, content, bytes, called));
    }
  }

  @Override
  public void complete(long linker) {
    NvJitLink loaded = nvJitLink.get();
    int status = 0;
    try {
      status = (int) loaded.complete.invokeExact(linker);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
    if (status != 0) {
      throw new CompilerException(
          "nvJitLinkComplete(linker=%#x)".formatted(linker),
          status,
          NvJitLink.statusName(status),
          "");
    }
  }

  @Override
  public byte[] getLinkedCubin(long linker) {
    NvJitLink loaded = nvJitLink.get();
    return bytes("nvJitLinkGetLinkedCubin", loaded.cubinSize, loaded.cubin, linker);
  }

  @Override
  public byte[] getLinkedPtx(long linker) {
    NvJitLink loaded = nvJitLink.get();
    return ToolLibrary.withoutZero(
        bytes("nvJitLinkGetLinkedPtx", loaded.ptxSize, loaded.ptx, linker));
  }

  @Override
  public String getErrorLog(long linker) {
    NvJitLink loaded = nvJitLink.get();
    return ToolLibrary.text(
        bytes("nvJitLinkGetErrorLog", loaded.errorLogSize, loaded.errorLog, linker));
  }

  @Override
  public String getInfoLog(long linker) {
    NvJitLink loaded = nvJitLink.get();
    return ToolLibrary.text(
        bytes("nvJitLinkGetInfoLog", loaded.infoLogSize, loaded.infoLog, linker));
  }
}
