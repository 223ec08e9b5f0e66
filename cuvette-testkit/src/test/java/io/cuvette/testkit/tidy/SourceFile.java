package io.cuvette.testkit.tidy;

import java.util.List;

/**
 * A text file of the repository. Immutable.
 *
 * @param path from the root of the repository, with slashes
 * @param text what it holds
 * @param code the text with comments and literals blanked, each character at its place
 */
record SourceFile(String path, String text, String code) {
  static SourceFile of(String path, String text) {
    return new SourceFile(path, text, path.endsWith(".java") ? Blanker.blank(text) : text);
  }

  boolean isJava() {
    return path.endsWith(".java");
  }

  /** Java that is delivered: no test, no build script. */
  boolean isMainJava() {
    return isJava() && path.contains("/src/main/java/");
  }

  /** The folder under the root: the module of the build, for most files. */
  String module() {
    return path.substring(0, Math.max(0, path.indexOf('/')));
  }

  /** The package by the folder of the file; empty outside a source tree. */
  String packageName() {
    int start = path.indexOf("/java/");
    int end = path.lastIndexOf('/');
    return start < 0 || end < start + 6 ? "" : path.substring(start + 6, end).replace('/', '.');
  }

  String fileName() {
    return path.substring(path.lastIndexOf('/') + 1);
  }

  List<String> lines() {
    return text.lines().toList();
  }

  List<String> codeLines() {
    return code.lines().toList();
  }

  int lineAt(int offset) {
    return (int) text.substring(0, offset).chars().filter(c -> c == '\n').count() + 1;
  }

  Finding finding(int line, String message) {
    return new Finding(path, line, message);
  }
}
