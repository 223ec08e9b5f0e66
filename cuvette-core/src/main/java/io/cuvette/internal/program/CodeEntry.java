package io.cuvette.internal.program;

import io.cuvette.KernelCode;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/** Code as the bytes of a file, with its key and a checksum over all. Stateless. */
final class CodeEntry {
  private static final int MAGIC = 0x43757643; // "CuvC"
  private static final int FORMAT = 1;
  private static final int CHECKSUM = 32;

  private CodeEntry() {}

  static byte[] encode(String key, KernelCode code) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(code.size() + 1024);
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeInt(MAGIC);
      out.writeInt(FORMAT);
      write(out, key);
      write(out, code.kind().name());
      write(out, code.bytes());
      write(out, code.log());
      out.writeInt(code.loweredNames().size());
      for (Map.Entry<String, String> each : code.loweredNames().entrySet()) {
        write(out, each.getKey());
        write(out, each.getValue());
      }
      out.write(checksum(bytes.toByteArray(), bytes.size()));
    } catch (IOException e) {
      throw new UncheckedIOException(e); // nothing is written to a file here
    }
    return bytes.toByteArray();
  }

  private static void write(DataOutputStream out, String text) throws IOException {
    write(out, text.getBytes(StandardCharsets.UTF_8));
  }

  private static void write(DataOutputStream out, byte[] bytes) throws IOException {
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  /** The code; empty if the bytes are not what {@link #encode} made for the key. */
  static Optional<KernelCode> decode(String key, byte[] bytes) {
    int content = bytes.length - CHECKSUM;
    if (content < 0
        || !Arrays.equals(checksum(bytes, content), 0, CHECKSUM, bytes, content, bytes.length)) {
      return Optional.empty();
    }
    try {
      return decode(key, ByteBuffer.wrap(bytes, 0, content));
    } catch (BufferUnderflowException | IllegalArgumentException e) {
      // A checksum that is right over content that is not: another program wrote it.
      return Optional.empty();
    }
  }

  private static Optional<KernelCode> decode(String key, ByteBuffer in) {
    if (in.getInt() != MAGIC || in.getInt() != FORMAT || !text(in).equals(key)) {
      return Optional.empty();
    }
    KernelCode.Kind kind = KernelCode.Kind.valueOf(text(in));
    byte[] code = bytes(in);
    String log = text(in);
    Map<String, String> names = new LinkedHashMap<>();
    for (int left = in.getInt(); left > 0; left--) {
      names.put(text(in), text(in));
    }
    return Optional.of(new KernelCode(kind, code, log, names));
  }

  private static String text(ByteBuffer in) {
    return new String(bytes(in), StandardCharsets.UTF_8);
  }

  private static byte[] bytes(ByteBuffer in) {
    int length = in.getInt();
    if (length < 0 || length > in.remaining()) {
      throw new BufferUnderflowException();
    }
    byte[] bytes = new byte[length];
    in.get(bytes);
    return bytes;
  }

  private static byte[] checksum(byte[] bytes, int length) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      digest.update(bytes, 0, length);
      return digest.digest();
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every JDK has SHA-256", e);
    }
  }
}
