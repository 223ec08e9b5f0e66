package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** What the tests of the sanitizer share: a driver with nothing behind it, and what is reported. */
abstract class SanitizerTestBase {
  static final MemorySegment HOST = Arena.ofAuto().allocate(4096);

  final TinyDriver tiny = new TinyDriver();
  final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();
  final SanitizerDriver driver = SanitizerDriver.reporting(tiny.driver, reports::add);

  long stream() {
    return driver.streams().streamCreateWithPriority(0, 1, 0);
  }

  long blockingStream() {
    return driver.streams().streamCreateWithPriority(0, 0, 0);
  }

  long event() {
    return driver.events().eventCreate(0, 2);
  }

  long memory() {
    return driver.memory().memAlloc(0, 1024);
  }

  void write(long address, long stream) {
    driver.transfers().memsetD8Async(0, address, (byte) 1, 1024, stream);
  }

  void read(long address, long stream) {
    driver.transfers().memcpyDtoHAsync(0, HOST.asSlice(0, 1024), address, stream);
  }

  void assertSilent() {
    assertThat(reports).isEmpty();
  }

  /** One mistake, which it gives. */
  SanitizerReport assertOnly(Misuse misuse) {
    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(misuse);
    return reports.getFirst();
  }

  /** A kernel that is given an address as its only argument. */
  void launch(long address, long stream) {
    long library = driver.kernels().libraryLoadData(new byte[1]);
    long kernel = driver.kernels().libraryGetKernel(library, "any");
    MemorySegment values = Arena.ofAuto().allocate(Long.BYTES, Long.BYTES);
    values.set(ValueLayout.JAVA_LONG, 0, address);
    driver
        .kernels()
        .launchKernel(
            0,
            stream,
            kernel,
            new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false),
            new LaunchParameters(values, List.of(new KernelParameter(0, Long.BYTES))));
  }
}
