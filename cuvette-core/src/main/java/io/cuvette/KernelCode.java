package io.cuvette;

import io.cuvette.internal.program.CodeKinds;
import io.cuvette.internal.program.Texts;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;

/**
 * Code for devices, as it was compiled, linked or read. Immutable: {@link #bytes} is a copy.
 *
 * @param kind what the code is
 * @param bytes the code; PTX is without the 0 that may end it
 * @param log what the compiler or the linker reported; empty if nothing, or if the code was read
 * @param loweredNames the names in the code of what was named by an expression when it was compiled
 */
@SuppressWarnings("ArrayRecordComponent") // copied on the way in and out
public record KernelCode(Kind kind, byte[] bytes, String log, Map<String, String> loweredNames) {

  /** What code for devices is. */
  public enum Kind {
    /** Text that the driver compiles for its device. */
    PTX,
    /** Machine code for one architecture. */
    CUBIN,
    /** Code of several architectures in one container. */
    FATBIN,
    /** The compiler's own form, which is compiled when it is linked. */
    LTOIR,
    /** An object file of the host with code for devices in it. */
    OBJECT,
    /** An archive of such object files. */
    LIBRARY
  }

  /**
   * Code with its log and names.
   *
   * @throws IllegalArgumentException if there are no bytes, or PTX has a 0 inside
   */
  public KernelCode {
    Objects.requireNonNull(kind, "kind");
    Objects.requireNonNull(bytes, "bytes");
    Objects.requireNonNull(log, "log");
    loweredNames = Map.copyOf(Objects.requireNonNull(loweredNames, "loweredNames"));
    bytes = kind == Kind.PTX ? CodeKinds.withoutLastZero(bytes) : bytes.clone();
    CodeKinds.check(kind, bytes);
  }

  /**
   * {@return code whose kind is read from its bytes}
   *
   * @param bytes the code
   * @throws IllegalArgumentException if it is of no kind that is known
   */
  public static KernelCode of(byte[] bytes) {
    return of(CodeKinds.of(Objects.requireNonNull(bytes, "bytes")), bytes);
  }

  /**
   * {@return code of a kind} Whether it is of that kind is left to whoever loads or links it.
   *
   * @param kind what it is
   * @param bytes the code
   * @throws IllegalArgumentException if there are no bytes
   */
  public static KernelCode of(Kind kind, byte[] bytes) {
    return new KernelCode(kind, bytes, "", Map.of());
  }

  /**
   * {@return PTX}
   *
   * @param text the PTX
   * @throws IllegalArgumentException if it is empty or has a character 0
   */
  public static KernelCode ofPtx(String text) {
    return of(Kind.PTX, Texts.check("text", text).getBytes(StandardCharsets.UTF_8));
  }

  /**
   * {@return the code of a file, whose kind is read from its bytes}
   *
   * @param file the file
   * @throws IllegalArgumentException if it is of no kind that is known
   * @throws UncheckedIOException if the file cannot be read
   */
  public static KernelCode read(Path file) {
    Objects.requireNonNull(file, "file");
    byte[] bytes;
    try {
      bytes = Files.readAllBytes(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    try {
      return of(bytes);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(file + ": " + e.getMessage(), e);
    }
  }

  /** {@return a copy of the code} */
  @Override
  public byte[] bytes() {
    return bytes.clone();
  }

  /** {@return the size of the code in bytes} */
  public int size() {
    return bytes.length;
  }

  /**
   * {@return the PTX as text}
   *
   * @throws IllegalStateException if the code is no PTX
   */
  public String text() {
    if (kind != Kind.PTX) {
      throw new IllegalStateException("%s is no text (expected: PTX)".formatted(kind));
    }
    return new String(bytes, StandardCharsets.UTF_8);
  }

  /**
   * {@return the name in the code of what an expression names}
   *
   * @param expression as it was given to the compiler, such as {@code add<int>}
   * @throws IllegalArgumentException if it was not
   */
  public String loweredName(String expression) {
    String name = loweredNames.get(Objects.requireNonNull(expression, "expression"));
    if (name == null) {
      throw new IllegalArgumentException(
          "expression: '%s' (expected: one of %s, which the code was compiled with)"
              .formatted(expression, loweredNames.keySet().stream().sorted().toList()));
    }
    return name;
  }

  /** {@return whether it is the same kind of code with the same bytes, log and names} */
  @Override
  public boolean equals(Object other) {
    return other instanceof KernelCode code
        && kind == code.kind
        && Arrays.equals(bytes, code.bytes)
        && log.equals(code.log)
        && loweredNames.equals(code.loweredNames);
  }

  @Override
  public int hashCode() {
    return Objects.hash(kind, Arrays.hashCode(bytes), log, loweredNames);
  }

  /** {@return the kind and the size} */
  @Override
  public String toString() {
    return "KernelCode[%s, %d bytes]".formatted(kind, bytes.length);
  }
}
