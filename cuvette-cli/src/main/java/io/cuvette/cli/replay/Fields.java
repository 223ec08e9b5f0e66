package io.cuvette.cli.replay;

/** The comma-separated fields of a line, and what they mean. Not thread-safe. */
final class Fields {
  /** No number is negative, so this stands for text that is none. */
  static final long WRONG = -1;

  private static final byte[] NIL = {'(', 'n', 'i', 'l', ')'};

  private final LineSource source;
  private final int[] starts = new int[64];
  private final int[] ends = new int[64];
  private int count;

  Fields(LineSource source) {
    this.source = source;
  }

  /** Finds the fields of the current line; gives how many there are, 64 at most. */
  int split() {
    byte[] bytes = source.bytes();
    int end = source.end();
    int start = source.start();
    count = 0;
    for (int i = start; i <= end && count < starts.length; i++) {
      if (i == end || bytes[i] == ',') {
        set(count++, bytes, start, i);
        start = i + 1;
      }
    }
    return count;
  }

  private void set(int field, byte[] bytes, int from, int to) {
    int start = from;
    int end = to;
    while (start < end && isBlank(bytes[start])) {
      start++;
    }
    while (end > start && isBlank(bytes[end - 1])) {
      end--;
    }
    starts[field] = start;
    ends[field] = end;
  }

  private static boolean isBlank(byte b) {
    return b == ' ' || b == '\t';
  }

  String excerpt(int field) {
    return source.excerpt(starts[field], ends[field]);
  }

  boolean is(int field, byte[] text) {
    return java.util.Arrays.equals(
        source.bytes(), starts[field], ends[field], text, 0, text.length);
  }

  /** A decimal number below 2^63, or {@link #WRONG}. */
  long decimal(int field) {
    return digits(starts[field], ends[field]);
  }

  private long digits(int from, int to) {
    byte[] bytes = source.bytes();
    long value = from == to ? WRONG : 0;
    for (int i = from; i < to; i++) {
      int digit = bytes[i] - '0';
      if (digit < 0 || digit > 9 || value > (Long.MAX_VALUE - digit) / 10) {
        return WRONG;
      }
      value = value * 10 + digit;
    }
    return value;
  }

  /** Whether this can be the number of a thread: up to 64 bits in decimal. */
  boolean isThread(int field) {
    int length = ends[field] - starts[field];
    if (length == 0 || length > 20) {
      return false;
    }
    for (int i = starts[field]; i < ends[field]; i++) {
      if (!isDigit(source.bytes()[i])) {
        return false;
      }
    }
    return true;
  }

  /** Whether this is a count of something, or a time of day with or without a fraction. */
  boolean isTime(int field) {
    byte[] bytes = source.bytes();
    int start = starts[field];
    int end = ends[field];
    int point = start;
    while (point < end && bytes[point] != '.') {
      point++;
    }
    if (point < end && digits(point + 1, end) == WRONG) {
      return false;
    }
    return digits(start, point) != WRONG || isClock(bytes, start, point);
  }

  /** Older logs of RMM have a colon before the fraction. */
  private boolean isClock(byte[] bytes, int start, int end) {
    boolean fraction =
        end - start > 8 && bytes[start + 8] == ':' && digits(start + 9, end) != WRONG;
    return (end - start == 8 || fraction)
        && bytes[start + 2] == ':'
        && bytes[start + 5] == ':'
        && isBelow(start, 24)
        && isBelow(start + 3, 60)
        && isBelow(start + 6, 61);
  }

  private boolean isBelow(int start, long bound) {
    long value = digits(start, start + 2);
    return value != WRONG && value < bound;
  }

  /** Whether this is a pointer in hexadecimal, with or without 0x, or {@code (nil)}. */
  boolean isPointer(int field) {
    int length = ends[field] - hexStart(field);
    if (is(field, NIL)) {
      return true;
    }
    if (length < 1 || length > 16) {
      return false;
    }
    for (int i = hexStart(field); i < ends[field]; i++) {
      if (Character.digit(source.bytes()[i], 16) < 0) {
        return false;
      }
    }
    return true;
  }

  /** The pointer of a field that {@link #isPointer}; it may use all 64 bits. */
  long pointer(int field) {
    long value = 0;
    if (!is(field, NIL)) {
      for (int i = hexStart(field); i < ends[field]; i++) {
        value = value << 4 | Character.digit(source.bytes()[i], 16);
      }
    }
    return value;
  }

  private int hexStart(int field) {
    byte[] bytes = source.bytes();
    int start = starts[field];
    boolean prefixed =
        ends[field] - start > 2 && bytes[start] == '0' && (bytes[start + 1] | 0x20) == 'x';
    return prefixed ? start + 2 : start;
  }

  private static boolean isDigit(byte b) {
    return b >= '0' && b <= '9';
  }
}
