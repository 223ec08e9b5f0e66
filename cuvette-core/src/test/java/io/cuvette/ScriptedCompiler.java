package io.cuvette;

import io.cuvette.driver.CompilerCalls;
import io.cuvette.driver.CompilerException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** A compiler that "compiles" to text that says what it was given. Thread-safe. */
final class ScriptedCompiler implements CompilerCalls {
  private final AtomicLong last = new AtomicLong();
  private final Map<Long, String> programs = new ConcurrentHashMap<>();

  /** How often something was compiled. */
  final AtomicInteger compilations = new AtomicInteger();

  int version = 13_000;
  String library = "scripted";
  Set<String> failing = Set.of();
  byte[] code = "code".getBytes(StandardCharsets.UTF_8);
  String log = "";
  Runnable whileCompiling = () -> {};

  /** How many programs there are that nobody destroyed. */
  int open() {
    return programs.size();
  }

  private void fail(String call) {
    if (failing.contains(call)) {
      throw new CompilerException(call + "()", 9, "NVRTC_ERROR_OF_TEST", "");
    }
  }

  @Override
  public String library() {
    return library;
  }

  @Override
  public int version() {
    return version;
  }

  @Override
  public List<Integer> supportedArchitectures() {
    return List.of(80, 90);
  }

  @Override
  public long createProgram(String source, String name, Map<String, String> headers) {
    fail("create");
    long program = last.incrementAndGet();
    programs.put(program, source + name + headers);
    return program;
  }

  @Override
  public void destroyProgram(long program) {
    programs.remove(program);
    fail("destroy");
  }

  @Override
  public void addNameExpression(long program, String expression) {
    fail("expression");
    programs.merge(program, expression, String::concat);
  }

  @Override
  public void compileProgram(long program, List<String> options) {
    compilations.incrementAndGet();
    whileCompiling.run();
    fail("compile");
    programs.merge(program, options.toString(), String::concat);
  }

  @Override
  public String getProgramLog(long program) {
    fail("log");
    return log;
  }

  @Override
  public byte[] getPtx(long program) {
    fail("get");
    return code.clone();
  }

  @Override
  public byte[] getCubin(long program) {
    fail("get");
    return code.clone();
  }

  @Override
  public byte[] getLtoIr(long program) {
    fail("get");
    return code.clone();
  }

  @Override
  public String getLoweredName(long program, String expression) {
    fail("lowered");
    return "_Z" + expression.length() + expression.replaceAll("\\W", "");
  }
}
