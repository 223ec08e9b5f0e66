package io.cuvette.internal.program;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** Digests what compiled code depends on, each part with its length. Used by one thread. */
final class CodeKey {
  private final MessageDigest digest;

  CodeKey() {
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every JDK has SHA-256", e);
    }
  }

  CodeKey with(String part) {
    return with(part.getBytes(StandardCharsets.UTF_8));
  }

  CodeKey with(long number) {
    return with(Long.toString(number));
  }

  CodeKey with(byte[] part) {
    digest.update((part.length + ":").getBytes(StandardCharsets.US_ASCII));
    digest.update(part);
    return this;
  }

  /** The digest of all parts, which ends the key. */
  String end() {
    return HexFormat.of().formatHex(digest.digest());
  }
}
