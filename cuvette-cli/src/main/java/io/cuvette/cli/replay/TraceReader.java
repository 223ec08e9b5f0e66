package io.cuvette.cli.replay;

import io.cuvette.cli.CommandFailure;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;

/**
 * Reads a log of RMM's logging resource: CSV with the columns {@value #HEADER}, plain or gzip. More
 * columns may follow. Not thread-safe.
 */
final class TraceReader {
  static final String HEADER = "Thread,Time,Action,Pointer,Size,Stream";

  private static final byte[] ALLOCATE = ascii("allocate");
  private static final byte[] FAILURE = ascii("allocate failure");
  private static final byte[] FREE = ascii("free");
  private static final int THREAD = 0;
  private static final int TIME = 1;
  private static final int ACTION = 2;
  private static final int POINTER = 3;
  private static final int SIZE = 4;
  private static final int STREAM = 5;

  private final String name;
  private final LineSource source;
  private final Fields fields;
  private final TraceBuilder trace = new TraceBuilder();

  private TraceReader(String name, InputStream in) {
    this.name = name;
    this.source = new LineSource(in);
    this.fields = new Fields(source);
  }

  /**
   * Reads a trace.
   *
   * @throws MalformedTraceException for the first line that is wrong
   * @throws CommandFailure if the file cannot be read
   */
  static Trace read(String name) {
    TraceReader reader = null;
    try (InputStream in = open(Path.of(name))) {
      reader = new TraceReader(name, in);
      return reader.parse();
    } catch (NoSuchFileException e) {
      throw new CommandFailure(name + ": no such file", e);
    } catch (AccessDeniedException e) {
      throw new CommandFailure(name + ": no permission to read it", e);
    } catch (EOFException | ZipException e) {
      int line = reader == null ? 0 : reader.source.number();
      throw new CommandFailure(
          "%s:%d: expected intact gzip data, found: %s"
              .formatted(name, line + 1, e.getMessage() == null ? "its end" : e.getMessage()),
          e);
    } catch (IOException | java.nio.file.InvalidPathException e) {
      throw new CommandFailure(name + ": cannot be read: " + e.getMessage(), e);
    }
  }

  private static InputStream open(Path file) throws IOException {
    PushbackInputStream in = new PushbackInputStream(Files.newInputStream(file), 2);
    byte[] magic = in.readNBytes(2);
    in.unread(magic);
    boolean gzip = magic.length == 2 && magic[0] == 0x1f && magic[1] == (byte) 0x8b;
    return gzip ? new GZIPInputStream(in, 1 << 16) : in;
  }

  private Trace parse() throws IOException {
    int columns = header();
    int blank = 0;
    while (next()) {
      if (source.start() == source.end()) {
        blank = blank == 0 ? source.number() : blank;
      } else if (blank != 0) {
        throw new MalformedTraceException(name, blank, "an operation", "a blank line");
      } else {
        row(columns);
      }
    }
    return trace.build(name);
  }

  private boolean next() throws IOException {
    boolean isThere = source.next();
    if (isThere && source.isTooLong()) {
      String expected = "a line of at most %d bytes".formatted(LineSource.LONGEST_LINE);
      throw wrong(expected, source.excerpt(source.start(), source.end()));
    }
    return isThere;
  }

  private int header() throws IOException {
    if (!next()) {
      throw new MalformedTraceException(name, 1, "the header " + HEADER, "an empty file");
    }
    int columns = fields.split();
    String[] names = HEADER.split(",", -1);
    boolean same = columns >= names.length;
    for (int i = 0; same && i < names.length; i++) {
      same = fields.is(i, ascii(names[i])) || (i == 0 && fields.is(i, ascii("\ufeff" + names[i])));
    }
    if (!same) {
      throw wrong("the header " + HEADER, source.excerpt(source.start(), source.end()));
    }
    return columns;
  }

  private void row(int columns) {
    int found = fields.split();
    if (found != columns) {
      String line = source.excerpt(source.start(), source.end());
      throw wrong(columns + " columns", found + " in " + line);
    }
    check(fields.isThread(THREAD), THREAD, "a thread number");
    check(fields.isTime(TIME), TIME, "a time, a whole number or HH:MM:SS.ffffff");
    check(fields.isPointer(POINTER), POINTER, "a hexadecimal pointer or (nil)");
    check(fields.decimal(SIZE) != Fields.WRONG, SIZE, "a size in bytes, 0 to 2^63 - 1");
    check(fields.isPointer(STREAM), STREAM, "a hexadecimal stream or (nil)");
    operation();
  }

  private void operation() {
    long pointer = fields.pointer(POINTER);
    long stream = fields.pointer(STREAM);
    String expected = null;
    if (fields.is(ACTION, ALLOCATE)) {
      expected = trace.allocate(pointer, fields.decimal(SIZE), stream, source.number());
    } else if (fields.is(ACTION, FREE)) {
      expected = trace.free(pointer, stream, source.number());
    } else if (fields.is(ACTION, FAILURE)) {
      trace.failure();
    } else {
      throw wrong("allocate, allocate failure or free", fields.excerpt(ACTION));
    }
    if (expected != null) {
      throw wrong(expected, source.excerpt(source.start(), source.end()));
    }
  }

  private void check(boolean right, int field, String expected) {
    if (!right) {
      throw wrong(expected, fields.excerpt(field));
    }
  }

  private MalformedTraceException wrong(String expected, String found) {
    return new MalformedTraceException(name, source.number(), expected, found);
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
