package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cuvette.Latches;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Await;
import io.cuvette.sim.internal.base.PagedBytes;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Page-locked and managed memory: real segments, their views, and the file behind them. */
class HostMemoryTest extends SimTestBase {
  private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(30);

  @Test
  void interruptedThread_hasHostMemoryAllTheSame() {
    Thread.currentThread().interrupt();
    try {
      MemorySegment memory = driver.memory().memHostAlloc(0, KIB, 0);
      driver.memory().memFreeHost(0, memory.address());
      driver.memory().memFreeHost(0, driver.memory().memHostAlloc(0, KIB, 0).address());
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  /** What the driver makes of such memory is not documented. */
  @Test
  void segmentThatGoesBeyondPageLockedMemory_isRefused() {
    long target = driver.memory().memAlloc(0, KIB);
    MemorySegment host = Arena.ofAuto().allocate(KIB);
    driver.memory().memHostRegister(0, host.asSlice(0, 100), 0);
    driver.transfers().memcpyHtoDAsync(0, target, host.asSlice(0, 100), 0);
    assertFails(
        CudaStatus.INVALID_VALUE,
        "101 bytes from offset 0",
        () -> driver.transfers().memcpyHtoDAsync(0, target, host.asSlice(0, 101), 0));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "51 bytes from offset 50",
        () -> driver.transfers().memcpyDtoHAsync(0, host.asSlice(50, 51), target, 0));
    driver.memory().memHostUnregister(0, host.address());
    driver.memory().memFree(0, target);
  }

  /** An interrupt closes the channel it meets: that must not be the end of all host memory. */
  @Test
  @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void threadThatIsInterruptedAllTheTime_losesNothing() throws InterruptedException {
    AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
    Thread user =
        Thread.ofPlatform()
            .start(() -> {
              try {
                for (int round = 0; round < 400; round++) {
                  MemorySegment memory = driver.memory().memHostAlloc(0, 300 * KIB, 0);
                  try (Arena arena = Arena.ofShared()) {
                    driver.memory().hostView(0, memory.address(), KIB, arena).fill((byte) 1);
                  }
                  driver.memory().memFreeHost(0, memory.address());
                }
              } catch (Throwable e) {
                failure.set(e);
              }
            });
    while (user.isAlive()) {
      user.interrupt();
      Thread.onSpinWait();
    }
    user.join();
    assertThat(failure).hasNullValue();
    driver.memory().memFreeHost(0, driver.memory().memHostAlloc(0, KIB, 0).address());
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 4096, 100_000, 3 * MIB})
  void memory_holdsNoZeros_isWritable_andNative(long bytes) {
    for (int round = 0; round < 3; round++) {
      MemorySegment segment = driver.memory().memHostAlloc(0, bytes, 7);
      assertThat(segment.byteSize()).isEqualTo(bytes);
      assertThat(segment.isNative()).isTrue();
      byte[] untouched = new byte[(int) bytes];
      Arrays.fill(untouched, PagedBytes.UNTOUCHED);
      assertThat(segment.mismatch(MemorySegment.ofArray(untouched))).isEqualTo(-1);
      segment.fill((byte) 0xFF);
      driver.memory().memFreeHost(0, segment.address());
    }
    assertThat(driver.liveHostBytes()).isZero();
  }

  @Test
  void segment_diesWithItsMemory() {
    MemorySegment segment = driver.memory().memHostAlloc(0, 64, 0);
    driver.memory().memFreeHost(0, segment.address());
    assertThatIllegalStateException().isThrownBy(() -> segment.get(ValueLayout.JAVA_BYTE, 0));
  }

  @Test
  void view_isTheSameMemory_andDiesWithItsArena() {
    MemorySegment segment = driver.memory().memHostAlloc(0, 10_000, 0);
    MemorySegment view;
    try (Arena arena = Arena.ofConfined()) {
      view = driver.memory().hostView(0, segment.address() + 5000, 100, arena);
      view.set(ValueLayout.JAVA_BYTE, 7, (byte) 42);
      assertThat(segment.get(ValueLayout.JAVA_BYTE, 5007)).isEqualTo((byte) 42);
      segment.set(ValueLayout.JAVA_BYTE, 5008, (byte) 43);
      assertThat(view.get(ValueLayout.JAVA_BYTE, 8)).isEqualTo((byte) 43);
      assertThat(view.byteSize()).isEqualTo(100);
      assertThat(driver.memory().hostView(0, segment.address(), 0, arena).byteSize()).isZero();
    }
    MemorySegment dead = view;
    assertThatIllegalStateException().isThrownBy(() -> dead.get(ValueLayout.JAVA_BYTE, 0));
    assertThat(segment.get(ValueLayout.JAVA_BYTE, 5007)).isEqualTo((byte) 42);
  }

  @Test
  void view_isPageLockedMemoryForCopiesToo() {
    MemorySegment segment = driver.memory().memHostAlloc(0, 10_000, 0);
    long device = driver.memory().memAlloc(0, 100);
    long stream = stream(0);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment view = driver.memory().hostView(0, segment.address() + 5000, 100, arena);
      assertThat(driver.memory().pointerGetAttribute(0, 11, view.address()))
          .isEqualTo(segment.address());
      CountDownLatch goOn = hold(0, stream);
      driver.transfers().memcpyHtoDAsync(0, device, view, stream);
      // Page-locked memory is read when the copy runs, and through the driver's own mapping.
      view.fill((byte) 9);
      goOn.countDown();
    }
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(device, 1)).containsExactly(9);
  }

  @Test
  void viewThatOutlivesItsMemory_keepsItsRangeToItself() {
    MemorySegment segment = driver.memory().memHostAlloc(0, 8192, 0);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment view = driver.memory().hostView(0, segment.address(), 8192, arena);
      segment.fill((byte) 1);
      driver.memory().memFreeHost(0, segment.address());
      MemorySegment other = driver.memory().memHostAlloc(0, 8192, 0);
      other.fill((byte) 2);
      assertThat(view.get(ValueLayout.JAVA_BYTE, 4096)).isEqualTo((byte) 1);
    }
  }

  @Test
  void views_areOfHostMemory_andInsideIt() {
    MemorySegment segment = driver.memory().memHostAlloc(0, 100, 0);
    long device = driver.memory().memAlloc(0, 100);
    CudaStatus status = CudaStatus.INVALID_VALUE;
    try (Arena arena = Arena.ofConfined()) {
      assertFails(status, "device memory", () -> driver.memory().hostView(0, device, 100, arena));
      assertFails(
          status, "inside", () -> driver.memory().hostView(0, segment.address(), 101, arena));
      assertFails(
          status, "inside", () -> driver.memory().hostView(0, segment.address() + 1, 100, arena));
    }
  }

  @Test
  void pageableMemory_isCopiedBeforeTheCallReturns() {
    long device = driver.memory().memAlloc(0, MIB);
    long stream = stream(0);
    for (int bytes : new int[] {100, 500_000}) {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment source = arena.allocate(bytes);
        source.fill((byte) 11);
        driver.transfers().memsetD8Async(0, device, (byte) 1, MIB, stream);
        driver.transfers().memcpyHtoDAsync(0, device, source, stream);
        source.fill((byte) 12);
        MemorySegment target = arena.allocate(bytes);
        driver.transfers().memcpyDtoHAsync(0, target, device, stream);
        assertThat(target.get(ValueLayout.JAVA_BYTE, bytes - 1)).isEqualTo((byte) 11);
        assertFails(
            CudaStatus.INVALID_VALUE,
            "read-only",
            () -> driver.transfers().memcpyDtoHAsync(0, target.asReadOnly(), device, stream));
      }
    }
  }

  @Test
  void largePageableCopyToTheDevice_landsWhole() {
    long device = driver.memory().memAlloc(0, 6 * MIB) + KIB;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment source = arena.allocate(5 * MIB).fill((byte) 1);
      source.asSlice(4 * MIB).fill((byte) 2);
      MemorySegment target = arena.allocate(5 * MIB);
      driver.transfers().memcpyHtoDAsync(0, device, source, 0);
      driver.transfers().memcpyDtoHAsync(0, target, device, 0);
      assertThat(target.mismatch(source)).isEqualTo(-1);
    }
  }

  /** What is small is staged; for more, the call waits for its turn. */
  @Test
  @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void pageableCopyToTheDevice_waitsForItsTurn_ifItIsLarge() throws InterruptedException {
    long device = driver.memory().memAlloc(0, MIB);
    long stream = stream(0);
    CountDownLatch held = hold(0, stream);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment small = arena.allocate(64 * KIB).fill((byte) 1);
      driver.transfers().memcpyHtoDAsync(0, device, small, stream);
      small.fill((byte) 2);
      MemorySegment large = arena.allocate(64 * KIB + 1);
      Thread waiting =
          Thread.ofPlatform()
              .start(() -> driver.transfers().memcpyHtoDAsync(0, device + MIB / 2, large, stream));
      assertThat(waiting.join(Duration.ofMillis(100))).isFalse();
      held.countDown();
      waiting.join();
      driver.streams().streamSynchronize(0, stream);
    }
    assertThat(read(device, (int) (64 * KIB))).containsOnly(1);
  }

  @Test
  void largePageableCopyToTheDevice_isInFlightWhenTheCallReturns_andOneFromThereIsNot() {
    try (SimulatedDriver lazy =
            Attended.only(SimulatedDriver.open(SimulatedOptions.parse("pace=lazy")));
        Arena arena = Arena.ofConfined()) {
      long device = lazy.memory().memAlloc(0, MIB);
      long stream = lazy.streams().streamCreateWithPriority(0, 1, 0);
      MemorySegment host = arena.allocate(128 * KIB);
      lazy.transfers().memcpyHtoDAsync(0, device, host, stream);
      assertThat(lazy.streams().streamQuery(0, stream)).isFalse();
      lazy.transfers().memcpyDtoHAsync(0, host, device, stream);
      assertThat(lazy.streams().streamQuery(0, stream)).isTrue();
    }
  }

  @Test
  @Timeout(60)
  void largePageableCopy_thatTheDeviceNeverGetsTo_isRefusedAsTheDeviceIs() throws Exception {
    try (SimulatedDriver eager = SimulatedDriver.open(SimulatedOptions.parse("pace=eager"))) {
      long device = eager.memory().memAlloc(0, MIB);
      long stream = eager.streams().streamCreateWithPriority(0, 1, 0);
      CountDownLatch goOn = new CountDownLatch(1);
      eager
          .streams()
          .launchHostFunc(
              0,
              stream,
              () -> {
                Latches.await(goOn);
                throw new IllegalStateException("oops");
              });
      AtomicReference<@Nullable Throwable> thrown = new AtomicReference<>();
      MemorySegment host = Arena.ofAuto().allocate(128 * KIB);
      Thread copying =
          Thread.ofPlatform()
              .uncaughtExceptionHandler((_, e) -> thrown.set(e))
              .start(() -> eager.transfers().memcpyHtoDAsync(0, device, host, stream));
      assertThat(Await.until(() -> copying.getState() == Thread.State.WAITING, LONG_NANOS))
          .as("it waits for its turn")
          .isTrue();
      goOn.countDown();
      copying.join();
      assertThat(thrown.get())
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.LAUNCH_FAILED));
    }
  }

  @Test
  void wrongArguments_areRefused() {
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(status, "bytes: 0", () -> driver.memory().memHostAlloc(0, 0, 0));
    assertFails(status, "flags: 8", () -> driver.memory().memHostAlloc(0, 1, 8));
    assertFails(status, "flags: 3", () -> driver.memory().memAllocManaged(0, 1, 3));
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "-Dcuvette.sim.dir",
        () -> driver.memory().memHostAlloc(0, 1L << 60, 0));
    assertFails(
        CudaStatus.OUT_OF_MEMORY,
        "requested=",
        () -> driver.memory().memAllocManaged(0, Long.MAX_VALUE, 1));
    assertThat(driver.liveAllocations()).isZero();
  }

  @Test
  void randomAllocations_keepTheirContents_andTheFileDoesNotGrow() throws IOException {
    long seed = Long.getLong("cuvette.seed", 3);
    Random random = new Random(seed);
    MemorySegment[] live = new MemorySegment[20];
    long peak = 0;
    for (int i = 0; i < 1000; i++) {
      int index = random.nextInt(live.length);
      MemorySegment old = live[index];
      if (old != null) {
        assertThat(old.get(ValueLayout.JAVA_BYTE, 0)).as("seed %d", seed).isEqualTo((byte) index);
        assertThat(old.get(ValueLayout.JAVA_BYTE, old.byteSize() - 1)).isEqualTo((byte) index);
        driver.memory().memFreeHost(0, old.address());
      }
      MemorySegment fresh = driver.memory().memHostAlloc(0, 1 + random.nextInt(50_000), 0);
      assertThat(fresh.get(ValueLayout.JAVA_BYTE, fresh.byteSize() - 1))
          .isEqualTo(PagedBytes.UNTOUCHED);
      fresh.fill((byte) index);
      live[index] = fresh;
      peak = Math.max(peak, driver.liveHostBytes());
    }
    assertThat(driver.machine.hostMemory.fileBytes()).isLessThan(3 * peak);
    for (MemorySegment segment : live) {
      if (segment != null) {
        driver.memory().memFreeHost(0, segment.address());
      }
    }
    assertThat(driver.machine.hostMemory.fileBytes()).isZero();
  }

  @Test
  void directory_canBeChosen_andNothingIsLeftThere(@TempDir Path directory) throws IOException {
    System.setProperty("cuvette.sim.dir", directory.toString());
    try (SimulatedDriver other = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      other.memory().memHostAlloc(0, 100, 0).fill((byte) 1);
    } finally {
      System.clearProperty("cuvette.sim.dir");
    }
    try (var files = Files.list(directory)) {
      assertThat(files).isEmpty();
    }
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void file_isForThisUserAlone_andHasNoName(@TempDir Path directory) throws IOException {
    System.setProperty("cuvette.sim.dir", directory.toString());
    try (SimulatedDriver other = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      other.memory().memHostAlloc(0, 100, 0);
      try (var files = Files.list(directory)) {
        assertThat(files).isEmpty();
      }
      assertThat(openIn(directory))
          .isNotEmpty()
          .allSatisfy(file ->
              assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
                  .isEqualTo("rw-------"));
    } finally {
      System.clearProperty("cuvette.sim.dir");
    }
    assertThat(openIn(directory)).isEmpty();
  }

  /** The file is found among the open ones. */
  @Test
  @EnabledOnOs(OS.LINUX)
  void lookingForTheFile_leavesNothingOpen() throws IOException {
    int before = openIn(Path.of("/proc/self/fd")).size();
    for (int i = 0; i < 9; i++) {
      try (SimulatedDriver other = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
        other.memory().memHostAlloc(0, 100, 0);
      }
    }
    assertThat(openIn(Path.of("/proc/self/fd"))).hasSizeLessThan(before + 9);
  }

  private static List<Path> openIn(Path directory) throws IOException {
    try (var open = Files.list(Path.of("/proc/self/fd"))) {
      return open.filter(descriptor -> linksInto(directory, descriptor)).toList();
    }
  }

  private static boolean linksInto(Path directory, Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).startsWith(directory.toRealPath());
    } catch (IOException e) {
      return false; // closed meanwhile
    }
  }

  /** Memory that is only promised ends the process when it is touched and there is none. */
  @Test
  @EnabledOnOs(OS.LINUX)
  void memory_isThereWhenItIsAllocated(@TempDir Path directory) throws Exception {
    System.setProperty("cuvette.sim.dir", directory.toString());
    try (SimulatedDriver other = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      MemorySegment first = other.memory().memHostAlloc(0, 3 * MIB, 0);
      other.memory().memAllocManaged(0, 5 * MIB, 1);
      assertThat(bytesOnDisk(directory)).isGreaterThanOrEqualTo(8 * MIB);
      other.memory().memFreeHost(0, first.address());
      other.memory().memHostAlloc(0, 4 * MIB, 0);
      assertThat(bytesOnDisk(directory)).isGreaterThanOrEqualTo(9 * MIB);
    } finally {
      System.clearProperty("cuvette.sim.dir");
    }
  }

  private static long bytesOnDisk(Path directory) throws IOException, InterruptedException {
    String file =
        openIn(directory).getFirst().toString().replace("self", ProcessHandle.current().pid() + "");
    Process stat =
        new ProcessBuilder("stat", "-L", "-c", "%b %B", file).redirectErrorStream(true).start();
    String[] blocks = new String(stat.getInputStream().readAllBytes()).strip().split(" ");
    assertThat(stat.waitFor()).isZero();
    return Long.parseLong(blocks[0]) * Long.parseLong(blocks[1]);
  }

  @Test
  void directoryThatIsNotThere_isOneClearError(@TempDir Path directory) {
    System.setProperty("cuvette.sim.dir", directory.resolve("missing").toString());
    try (SimulatedDriver other = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      assertFails(
          CudaStatus.OPERATING_SYSTEM,
          "missing' (expected: a directory)",
          () -> other.memory().memHostAlloc(0, 100, 0));
      assertThat(other.liveAllocations()).isZero();
    } finally {
      System.clearProperty("cuvette.sim.dir");
    }
  }

  /** What else can take memory away that was there: nothing is lost in silence. */
  @Test
  @EnabledOnOs(OS.LINUX)
  void hostMemoryThatTheSystemTakesBack_failsTheDevice() throws IOException {
    SimulatedDriver alone = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    try (alone) {
      MemorySegment memory = alone.memory().memHostAlloc(0, MIB, 0);
      UUID mark = UUID.randomUUID();
      memory.set(ValueLayout.JAVA_LONG, 0, mark.getMostSignificantBits());
      memory.set(ValueLayout.JAVA_LONG, 8, mark.getLeastSignificantBits());
      truncate(mark);
      assertFails(
          CudaStatus.UNKNOWN,
          "more room for its file",
          () -> {
            alone.transfers().memsetD8Async(0, memory.address(), (byte) 1, MIB, 0);
            alone.streams().streamSynchronize(0, 0);
          });
    }
  }

  /** Cuts the file of a driver off that begins with a mark. */
  private static void truncate(UUID mark) throws IOException {
    try (DirectoryStream<Path> open = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
      for (Path one : open) {
        if (Files.isSymbolicLink(one)
            && Files.readSymbolicLink(one).toString().contains("cuvette-sim-")) {
          try (FileChannel file =
              FileChannel.open(one, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer start = ByteBuffer.allocate(16).order(ByteOrder.nativeOrder());
            if (file.read(start, 0) == 16
                && start.getLong(0) == mark.getMostSignificantBits()
                && start.getLong(8) == mark.getLeastSignificantBits()) {
              FileChannel _ = file.truncate(0);
              return;
            }
          }
        }
      }
    }
    throw new AssertionError("no file of the driver is open");
  }
}
