package io.cuvette.cli.replay;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The lines of a stream as ranges of bytes, without the ends of lines of Unix or Windows. Not
 * thread-safe.
 */
final class LineSource {
  static final int LONGEST_LINE = 1 << 16;

  private static final int LONGEST_EXCERPT = 60;

  private final InputStream in;
  private byte[] buffer = new byte[1 << 18];
  private int position;
  private int limit;
  private int number;
  private int start;
  private int end;

  LineSource(InputStream in) {
    this.in = in;
  }

  /** The bytes; the line is those from {@link #start()} to {@link #end()}. */
  byte[] bytes() {
    return buffer;
  }

  int start() {
    return start;
  }

  int end() {
    return end;
  }

  /** The number of the line, from 1. */
  int number() {
    return number;
  }

  /** Whether the line has more than {@value #LONGEST_LINE} bytes: it may be cut. */
  boolean isTooLong() {
    return end - start > LONGEST_LINE;
  }

  /** Goes to the next line; false at the end. */
  boolean next() throws IOException {
    int newline = find(position);
    if (newline == limit && position == limit) {
      start = limit;
      end = limit;
      return false;
    }
    start = position;
    end = newline;
    position = Math.min(newline + 1, limit);
    if (end > start && buffer[end - 1] == '\r') {
      end--;
    }
    number++;
    return true;
  }

  /** The place of the next newline, or the limit at the end of the stream or of patience. */
  private int find(int from) throws IOException {
    int at = from;
    while (true) {
      while (at < limit) {
        if (buffer[at] == '\n') {
          return at;
        }
        at++;
      }
      int looked = at - position;
      if (looked > LONGEST_LINE + 1 || !fill()) { // with what ends a line on Windows
        return limit;
      }
      at = position + looked;
    }
  }

  /** Moves what is left to the front and reads more; false at the end. */
  private boolean fill() throws IOException {
    System.arraycopy(buffer, position, buffer, 0, limit - position);
    limit -= position;
    position = 0;
    int read = in.read(buffer, limit, buffer.length - limit);
    if (read > 0) {
      limit += read;
    }
    return read > 0;
  }

  /** The line, or a part of it, for an error: what cannot be printed is replaced. */
  String excerpt(int from, int to) {
    int cut = Math.min(to, from + LONGEST_EXCERPT);
    String text =
        new String(Arrays.copyOfRange(buffer, from, cut), StandardCharsets.UTF_8)
            .replaceAll("\\p{Cntrl}", "?");
    return "'" + text + (cut < to ? "…'" : "'");
  }
}
