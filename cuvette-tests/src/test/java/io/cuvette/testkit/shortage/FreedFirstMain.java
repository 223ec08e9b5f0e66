package io.cuvette.testkit.shortage;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.support.Drivers;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * Prints what an importer sees of plain memory that its exporter frees first.
 *
 * <p>Arguments: the device, such as {@code gpu}; and for the second process the 64 bytes.
 */
public final class FreedFirstMain {
  private static final int BYTES = 4 << 20;

  private FreedFirstMain() {}

  public static void main(String[] arguments) throws IOException, InterruptedException {
    try (CudaDriver driver = Drivers.open(arguments[0])) {
      if (arguments.length > 1) {
        importer(driver, HexFormat.of().parseHex(arguments[1]));
      } else {
        exporter(driver, arguments[0]);
      }
    }
  }

  private static void exporter(CudaDriver driver, String device)
      throws IOException, InterruptedException {
    long memory = driver.memory().memAlloc(0, BYTES);
    fill(driver, memory, 7);
    String handle = HexFormat.of().formatHex(driver.sharing().ipcGetMemHandle(0, memory));
    Process child =
        new ProcessBuilder(
                ProcessHandle.current().info().command().orElseThrow(),
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                FreedFirstMain.class.getName(),
                device,
                handle)
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    BufferedReader answers = child.inputReader(StandardCharsets.UTF_8);
    say(driver, "exported", answers.readLine());
    driver.memory().memFree(0, memory);
    say(driver, "freed by the exporter", ask(child, answers));
    long again = driver.memory().memAlloc(0, BYTES);
    fill(driver, again, 9);
    say(
        driver,
        "allocated again " + (again == memory ? "there" : "elsewhere"),
        ask(child, answers));
    child.outputWriter(StandardCharsets.UTF_8).close();
    say(driver, "importer ends", answers.readLine() + ", exit " + child.waitFor());
  }

  private static String ask(Process child, BufferedReader answers) throws IOException {
    child.outputWriter(StandardCharsets.UTF_8).append('\n').flush();
    return answers.readLine();
  }

  private static void fill(CudaDriver driver, long memory, int value) {
    driver.transfers().memsetD8Async(0, memory, (byte) value, BYTES, 0);
    driver.streams().streamSynchronize(0, 0);
  }

  private static void say(CudaDriver driver, String when, String answer) {
    System.out.printf(
        "%-40s importer: %s; free %,d%n", when, answer, driver.devices().memGetInfo(0).freeBytes());
  }

  private static void importer(CudaDriver driver, byte[] handle) throws IOException {
    long memory = driver.sharing().ipcOpenMemHandle(0, handle);
    MemorySegment host = driver.memory().memHostAlloc(0, BYTES, 0);
    BufferedReader asked =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    do {
      System.out.println(read(driver, host, memory));
    } while (asked.readLine() != null);
    try {
      driver.sharing().ipcCloseMemHandle(0, memory);
      System.out.println("closed");
    } catch (CudaException e) {
      System.out.println("close: " + e.status());
    }
  }

  private static String read(CudaDriver driver, MemorySegment host, long memory) {
    try {
      host.fill((byte) 1);
      driver.transfers().memcpyDtoHAsync(0, host, memory, 0);
      driver.streams().streamSynchronize(0, 0);
      return "reads " + host.get(ValueLayout.JAVA_BYTE, 0);
    } catch (CudaException e) {
      return "reading is " + e.status();
    }
  }
}
