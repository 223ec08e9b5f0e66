import com.google.googlejavaformat.java.Formatter;
import com.google.googlejavaformat.java.FormatterException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/**
 * Formats Java sources with google-java-format, or checks that they are formatted. Run by the build
 * on the JDK of the toolchain, because the formatter must know the language it formats. A check
 * looks at the lengths of methods too, where Checkstyle does not.
 *
 * <p>Arguments: {@code --check} or {@code --replace}, then files or folders.
 */
final class Format {
  private static final Formatter FORMATTER = new Formatter();

  private Format() {}

  public static void main(String[] args) throws IOException {
    boolean replace = args[0].equals("--replace");
    AtomicInteger bad = new AtomicInteger();
    List<Path> files = sources(List.of(args).subList(1, args.length));
    for (Path file : files) {
      if (!format(file, replace)) {
        bad.incrementAndGet();
      }
    }
    if (bad.get() > 0) {
      System.err.println(bad + " file(s) not formatted; \"mvn -Pformat validate\" formats them");
      System.exit(1);
    }
    if (!replace && MethodLengths.check(files.stream().filter(Format::isLeftToUs).toList()) > 0) {
      System.exit(1);
    }
  }

  private static List<Path> sources(List<String> roots) throws IOException {
    Stream<Path> found = Stream.empty();
    for (String root : roots) {
      found = Stream.concat(found, Files.walk(Path.of(root)));
    }
    return found.filter(Format::isSource).sorted().toList();
  }

  private static boolean isSource(Path file) {
    String path = file.toString().replace('\\', '/');
    return path.endsWith(".java") && !path.contains("/target/") && !path.contains("/.");
  }

  /** Whether Checkstyle does not read it. */
  private static boolean isLeftToUs(Path file) {
    return !file.toString().replace('\\', '/').contains("/src/main/");
  }

  /** Returns whether the file is as it should be when this returns. */
  private static boolean format(Path file, boolean replace) throws IOException {
    String source = Files.readString(file);
    String formatted;
    try {
      formatted = FORMATTER.formatSourceAndFixImports(source);
    } catch (FormatterException e) {
      System.err.println(file + ": " + e.getMessage());
      return false;
    }
    if (formatted.equals(source)) {
      return true;
    }
    if (replace) {
      Files.writeString(file, formatted);
    }
    System.err.println(file + (replace ? ": formatted" : ": not formatted"));
    return replace;
  }
}
