package io.cuvette.cli;

import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** One JSON object, written on one line; fields keep their order. Not thread-safe. */
public final class Json {
  private final Map<String, @Nullable Object> fields = new LinkedHashMap<>();

  /**
   * Adds a field: text, a number, a truth value, null, a {@link Json}, a map or a list of those.
   */
  public Json with(String name, @Nullable Object value) {
    fields.put(name, value);
    return this;
  }

  /** The object as a line of text. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder();
    write(text, fields);
    return text.toString();
  }

  private static void write(StringBuilder text, @Nullable Object value) {
    switch (value) {
      case null -> text.append("null");
      case Boolean truth -> text.append(truth);
      case Double number -> number(text, number);
      case Float number -> number(text, number);
      case Number number -> text.append(number);
      case Json object -> write(text, object.fields);
      case Map<?, ?> map -> object(text, map);
      case Iterable<?> list -> array(text, list);
      default -> string(text, value.toString());
    }
  }

  /** JSON has no infinity and no NaN. */
  private static void number(StringBuilder text, double number) {
    if (Double.isFinite(number)) {
      text.append(number);
    } else {
      text.append("null");
    }
  }

  private static void object(StringBuilder text, Map<?, ?> map) {
    char before = '{';
    for (Map.Entry<?, ?> field : map.entrySet()) {
      text.append(before);
      string(text, String.valueOf(field.getKey()));
      text.append(':');
      write(text, field.getValue());
      before = ',';
    }
    text.append(before == '{' ? "{}" : "}");
  }

  private static void array(StringBuilder text, Iterable<?> list) {
    char before = '[';
    for (Object element : list) {
      text.append(before);
      write(text, element);
      before = ',';
    }
    text.append(before == '[' ? "[]" : "]");
  }

  private static void string(StringBuilder text, String value) {
    text.append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      switch (c) {
        case '"' -> text.append("\\\"");
        case '\\' -> text.append("\\\\");
        case '\n' -> text.append("\\n");
        case '\r' -> text.append("\\r");
        case '\t' -> text.append("\\t");
        default -> plain(text, c);
      }
    }
    text.append('"');
  }

  /** Halves of a surrogate pair are escaped too, so that a lone one cannot spoil the output. */
  private static void plain(StringBuilder text, char c) {
    if (c < 0x20 || c == 0x7f || Character.isSurrogate(c)) {
      text.append("\\u%04x".formatted((int) c));
    } else {
      text.append(c);
    }
  }
}
