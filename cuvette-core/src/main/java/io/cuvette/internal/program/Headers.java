package io.cuvette.internal.program;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Finds the headers on disk that a source may include: all that any of its directives names,
 * whether or not the preprocessor gets there, in each of the folders that have one of that name. So
 * it finds at least what the compiler reads. What cannot be known is empty: a directive that names
 * a macro, and too much. Used once, by one thread.
 */
final class Headers {
  private static final int MOST_FILES = 5_000;
  private static final long MOST_BYTES = 256L << 20;

  private static final Pattern SPLICE = Pattern.compile("\\\\[ \\t]*\\r?\\n");
  private static final Pattern DIRECTIVE =
      Pattern.compile(
          "(?m)^(.*?)(?:#|%:|\\?\\?=)[ \\t\\f\\u000b]*"
              + "(?:(include_next|include|import|embed)\\b(.*)|(/\\*))");

  /** What a condition asks for: an operand of __has_include, or of a macro that hands it on. */
  private static final Pattern ASKED =
      Pattern.compile("\\(\\s*(\"[\\w./+-]+\"|<[\\w./+-]+>)\\s*\\)");

  private static final Pattern NAMED = Pattern.compile("\\s*(?:\"([^\"]+)\"|<([^>]+)>).*");

  private final List<Path> folders;
  private final SortedMap<Path, byte[]> found = new TreeMap<>();
  private final Deque<Path> unread = new ArrayDeque<>();
  private long bytes;

  private Headers(List<Path> folders) {
    this.folders = folders;
  }

  /** The headers with their content; empty if they cannot be known. */
  static Optional<SortedMap<Path, byte[]>> of(
      String source, String name, Map<String, String> given, List<Path> folders)
      throws IOException {
    Headers headers = new Headers(folders);
    boolean known = headers.scan(source, parent(name));
    for (Map.Entry<String, String> each : given.entrySet()) {
      known = known && headers.scan(each.getValue(), parent(each.getKey()));
    }
    while (known && !headers.unread.isEmpty()) {
      Path file = headers.unread.removeFirst();
      byte[] content = headers.found.getOrDefault(file, new byte[0]);
      known = headers.scan(new String(content, StandardCharsets.ISO_8859_1), file.getParent());
    }
    return known ? Optional.of(headers.found) : Optional.empty();
  }

  /** The folder that a name has, for one who looks beside it. */
  private static @Nullable Path parent(String name) {
    try {
      return Path.of(name).toAbsolutePath().getParent();
    } catch (InvalidPathException e) {
      return null;
    }
  }

  /** Notes what a text names; false if it cannot be known. */
  private boolean scan(String text, @Nullable Path beside) throws IOException {
    String lines = text.indexOf('\\') < 0 ? text : SPLICE.matcher(text).replaceAll("");
    Matcher directive = DIRECTIVE.matcher(lines);
    while (directive.find()) {
      String before = directive.group(1).strip();
      boolean first = before.isEmpty() || before.endsWith("*/");
      if (first && !isNamed(directive.group(3), beside)) {
        return false;
      }
    }
    Matcher asked = ASKED.matcher(lines);
    while (asked.find()) {
      boolean _ = isNamed(asked.group(1), beside);
    }
    return found.size() <= MOST_FILES && bytes <= MOST_BYTES;
  }

  private boolean isNamed(@Nullable String operand, @Nullable Path beside) throws IOException {
    Matcher named = NAMED.matcher(operand == null ? "" : operand);
    if (!named.matches()) {
      return false;
    }
    String quoted = named.group(1);
    List<Path> places = new ArrayList<>(folders);
    if (quoted != null && beside != null) {
      places.addFirst(beside);
    }
    for (Path place : places) {
      add(place, quoted != null ? quoted : named.group(2));
    }
    return true;
  }

  private void add(Path folder, String name) throws IOException {
    Path file;
    try {
      file = folder.resolve(name).normalize();
    } catch (InvalidPathException e) {
      return; // no name of a file, so the compiler finds none either
    }
    if (!found.containsKey(file) && Files.isRegularFile(file)) {
      byte[] content = Files.readAllBytes(file);
      bytes += content.length;
      found.put(file, content);
      unread.add(file);
    }
  }
}
