package io.cuvette.cli;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/**
 * A command that was run in this process. Immutable.
 *
 * @param code the exit code
 * @param out what it wrote on standard output
 * @param err what it wrote on standard error
 */
public record Run(int code, String out, String err) {

  /** Runs a command. */
  public static Run of(String... arguments) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    Terminal terminal = new Terminal(stream(out), stream(err), false);
    int code = Main.run(terminal, arguments);
    return new Run(
        code, out.toString(StandardCharsets.UTF_8), err.toString(StandardCharsets.UTF_8));
  }

  private static PrintStream stream(ByteArrayOutputStream bytes) {
    return new PrintStream(bytes, true, StandardCharsets.UTF_8);
  }

  /** The lines of standard output, each a JSON object. */
  public List<Map<String, Object>> json() {
    return out.lines().map(JsonReader::object).toList();
  }
}
