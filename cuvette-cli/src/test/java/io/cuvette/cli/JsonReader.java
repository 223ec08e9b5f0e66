package io.cuvette.cli;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON strictly, for tests. Not thread-safe. */
public final class JsonReader {
  private final String text;
  private int at;

  private JsonReader(String text) {
    this.text = text;
  }

  /** A line that must be exactly one object. */
  @SuppressWarnings("unchecked")
  public static Map<String, Object> object(String line) {
    JsonReader reader = new JsonReader(line);
    Object value = reader.value();
    reader.require(reader.at == line.length(), "the end");
    reader.require(value instanceof Map, "an object");
    return (Map<String, Object>) value;
  }

  private Object value() {
    char c = text.charAt(at);
    return switch (c) {
      case '{' -> map();
      case '[' -> list();
      case '"' -> string();
      case 't' -> word("true", true);
      case 'f' -> word("false", false);
      case 'n' -> word("null", null);
      default -> number();
    };
  }

  private Map<String, Object> map() {
    Map<String, Object> map = new LinkedHashMap<>();
    at++;
    while (text.charAt(at) != '}') {
      String name = string();
      take(':');
      require(!map.containsKey(name), "another name than " + name);
      map.put(name, value());
      if (text.charAt(at) != '}') {
        take(',');
        require(text.charAt(at) == '"', "a name");
      }
    }
    at++;
    return map;
  }

  private List<Object> list() {
    List<Object> list = new ArrayList<>();
    at++;
    while (text.charAt(at) != ']') {
      list.add(value());
      if (text.charAt(at) != ']') {
        take(',');
        require(text.charAt(at) != ']', "a value");
      }
    }
    at++;
    return list;
  }

  private String string() {
    StringBuilder value = new StringBuilder();
    take('"');
    while (text.charAt(at) != '"') {
      char c = text.charAt(at++);
      require(c >= 0x20, "no control character");
      value.append(c == '\\' ? escaped() : c);
    }
    at++;
    return value.toString();
  }

  private char escaped() {
    char c = text.charAt(at++);
    if (c == 'u') {
      at += 4;
      return (char) Integer.parseInt(text.substring(at - 4, at), 16);
    }
    int index = "\"\\/nrtbf".indexOf(c);
    require(index >= 0, "an escape");
    return "\"\\/\n\r\t\b\f".charAt(index);
  }

  private Object number() {
    int start = at;
    while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
    String number = text.substring(start, at);
    require(number.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?"), "a number");
    return number.matches("-?[0-9]+") ? (Object) Long.valueOf(number) : Double.valueOf(number);
  }

  private Object word(String word, Object value) {
    require(text.startsWith(word, at), word);
    at += word.length();
    return value;
  }

  private void take(char c) {
    require(text.charAt(at) == c, "'" + c + "'");
    at++;
  }

  private void require(boolean right, String expected) {
    if (!right) {
      throw new AssertionError("expected %s at %d of %s".formatted(expected, at, text));
    }
  }
}
