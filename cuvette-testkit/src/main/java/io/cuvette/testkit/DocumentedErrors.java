package io.cuvette.testkit;

import io.cuvette.driver.CudaStatus;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;

/** The errors that the header of the driver documents for its functions. Stateless. */
final class DocumentedErrors {
  /** How a row says that the functions may report what earlier work failed with. */
  static final String EARLIER = "earlier";

  private static final Map<String, Row> ROWS = read();

  private DocumentedErrors() {}

  /**
   * What is documented for one method of the seam. Immutable.
   *
   * @param method the method
   * @param functions the functions of the header that it stands for
   * @param reportsEarlier whether they may also report errors of earlier work
   * @param listed the errors they list
   */
  record Row(
      String method, List<String> functions, boolean reportsEarlier, Set<CudaStatus> listed) {

    private static Row of(String line) {
      String[] words = line.split(" ", -1);
      Set<CudaStatus> listed = EnumSet.noneOf(CudaStatus.class);
      for (String name : Arrays.asList(words).subList(3, words.length)) {
        listed.add(CudaStatus.valueOf(name));
      }
      return new Row(words[0], List.of(words[1].split(",", -1)), words[2].equals(EARLIER), listed);
    }
  }

  /** All rows. */
  static List<Row> rows() {
    return List.copyOf(ROWS.values());
  }

  /**
   * What a method of the seam can fail with; empty if nothing is documented. A kernel that failed
   * stands for all errors of earlier work. That a query is not ready is an answer of the seam.
   */
  static Set<CudaStatus> of(String method) {
    Set<CudaStatus> errors = EnumSet.noneOf(CudaStatus.class);
    Row row = ROWS.get(method);
    if (row != null) {
      errors.addAll(row.listed());
      if (row.reportsEarlier()) {
        errors.add(CudaStatus.LAUNCH_FAILED);
      }
      if (method.endsWith("Query")) {
        errors.remove(CudaStatus.NOT_READY);
      }
    }
    return errors;
  }

  private static Map<String, Row> read() {
    try (InputStream table =
        Objects.requireNonNull(
            DocumentedErrors.class.getResourceAsStream("documented-errors.txt"))) {
      return new String(table.readAllBytes(), StandardCharsets.UTF_8)
          .lines()
          .filter(line -> !line.startsWith("#"))
          .map(Row::of)
          .collect(Collectors.toUnmodifiableMap(Row::method, Function.identity()));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
