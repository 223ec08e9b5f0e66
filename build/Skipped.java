import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Says in one line how many tests a build skipped for want of a GPU, of a C compiler and of
 * cuda.core.
 *
 * <p>Arguments: the root of the sources, and when the build began, for older reports are those of
 * other builds.
 */
final class Skipped {
  private static final Pattern NO_GPU = Pattern.compile("<skipped[^>]*there is no device");
  private static final Pattern NO_COMPILER = Pattern.compile("<skipped[^>]*no C compiler");

  private static final Pattern NO_CUDA_CORE =
      Pattern.compile("<skipped[^>]*no Python with cuda.core");

  private Skipped() {}

  public static void main(String[] args) throws IOException {
    List<String> reports = reports(Path.of(args[0]), Instant.parse(args[1]));
    System.out.printf(
        "[INFO] Skipped for want of a GPU: %d, of a C compiler: %d, of cuda.core: %d%n",
        count(reports, NO_GPU), count(reports, NO_COMPILER), count(reports, NO_CUDA_CORE));
  }

  private static List<String> reports(Path root, Instant begin) throws IOException {
    try (Stream<Path> files = Files.find(root, 4, (file, _) -> isReport(file))) {
      return files.filter(file -> isOfBuild(file, begin)).map(Skipped::read).toList();
    }
  }

  private static boolean isReport(Path file) {
    return file.getParent().endsWith("target/surefire-reports")
        && file.getFileName().toString().matches("TEST-.*\\.xml");
  }

  private static boolean isOfBuild(Path file, Instant begin) {
    try {
      return !Files.getLastModifiedTime(file).toInstant().isBefore(begin);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static long count(List<String> reports, Pattern skipped) {
    return reports.stream().mapToLong(report -> skipped.matcher(report).results().count()).sum();
  }
}
