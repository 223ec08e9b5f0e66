package io.cuvette.internal.program;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Describes code for messages: what it is, and for which devices. Stateless. */
public final class CodeText {
  private static final Pattern VERSION = Pattern.compile("\\.version\\s+(\\d+\\.\\d+)");
  private static final Pattern TARGET = Pattern.compile("\\.target\\s+(\\w+)");

  /** How much of a text is looked at: both stand at its beginning, behind comments. */
  private static final int BEGINNING = 4096;

  /** Where a cubin has the version of its format, and the flags with the architecture. */
  private static final int FORMAT = 8;

  private static final int FLAGS = 48;

  /** The version of the format since which the architecture stands in the second byte. */
  private static final int NEW_FORMAT = 8;

  private CodeText() {}

  /** Such as "PTX 8.0 for sm_75" or "a cubin for sm_90". */
  public static String of(byte[] code) {
    try {
      return switch (CodeKinds.of(code)) {
        case PTX -> ptx(code);
        case CUBIN -> cubin(code);
        case FATBIN -> "a fatbin";
        case LTOIR -> "LTO-IR, which is linked before it is loaded";
        case OBJECT -> "an object file, which is linked before it is loaded";
        case LIBRARY -> "an archive, which is linked before it is loaded";
      };
    } catch (IllegalArgumentException e) {
      return "none that is known";
    }
  }

  private static String ptx(byte[] code) {
    int length = Math.min(code.length, BEGINNING);
    String text = new String(code, 0, length, StandardCharsets.ISO_8859_1);
    return "PTX %s for %s".formatted(first(VERSION, text), first(TARGET, text));
  }

  private static String first(Pattern pattern, String text) {
    Matcher found = pattern.matcher(text);
    return found.find() ? found.group(1) : "?";
  }

  private static String cubin(byte[] code) {
    return code.length < FLAGS + 2 ? "a cubin" : "a cubin for sm_" + architecture(code);
  }

  private static int architecture(byte[] code) {
    return code[code[FORMAT] < NEW_FORMAT ? FLAGS : FLAGS + 1] & 0xFF;
  }
}
