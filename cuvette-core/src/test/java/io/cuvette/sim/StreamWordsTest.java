package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Streams that wait for a word of memory. */
@Timeout(60)
class StreamWordsTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final int GREATER_OR_EQUAL = 0;
  private static final int EQUAL = 1;
  private static final int AND = 2;
  private static final int NOR = 3;
  private static final long PAGE = 2 * MIB;

  private final long waiting = stream(0);
  private final long writing = stream(0);
  private final long memory = driver.memory().memAlloc(0, 64);
  private final long result = driver.memory().memAlloc(0, 4);

  private void set(long address, int value) {
    driver.transfers().memsetD32Async(0, address, value, 1, writing);
    driver.streams().streamSynchronize(0, writing);
  }

  private void await(long address, int value, int flags) {
    driver.streams().streamWaitValue32(0, waiting, address, value, flags);
  }

  /** A value that does not fulfil it, and one that does. */
  private void assertGoesOn(long address, int flags, int value, int before, int after) {
    set(address, before);
    await(address, value, flags);
    driver.transfers().memsetD32Async(0, result, after, 1, waiting);
    for (int i = 0; i < 20; i++) { // a lazy device needs some calls to come to it
      assertThat(driver.streams().streamQuery(0, waiting)).as("%d: %d", flags, before).isFalse();
    }
    set(address, after);
    driver.streams().streamSynchronize(0, waiting);
  }

  @Test
  void wordOfTheDevice_letsAStreamGoOn_asTheFlagsSay() {
    long word = memory + 4;
    assertGoesOn(word, EQUAL, 5, 4, 5);
    assertGoesOn(word, GREATER_OR_EQUAL, -3, -4, -3);
    assertGoesOn(word, AND, 6, 9, 4);
    assertGoesOn(word, NOR, 7, ~7, 0);
    assertThat(read(result, 4)).containsOnly(0);
  }

  @Test
  void launchOfAGraph_waitsForItsWord_eachTime() {
    driver.captures().streamBeginCapture(0, waiting, 2);
    await(memory, 5, EQUAL);
    driver.transfers().memsetD32Async(0, result, 7, 1, waiting);
    long graph = driver.captures().streamEndCapture(0, waiting);
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    for (int launch = 0; launch < 2; launch++) {
      set(memory, 4);
      driver.graphs().graphLaunch(0, executable, waiting);
      for (int i = 0; i < 50; i++) {
        assertThat(driver.streams().streamQuery(0, waiting)).isFalse();
      }
      set(memory, 5);
      driver.streams().streamSynchronize(0, waiting);
    }
    assertThat(read(result, 1)).containsExactly(7);
    driver.graphs().graphExecDestroy(executable);
    driver.graphs().graphDestroy(graph);
  }

  @Test
  void wordThatIsMapped_letsAStreamGoOn() {
    long address = driver.virtual().memAddressReserve(PAGE, 0, 0);
    long handle =
        driver.virtual().memCreate(PAGE, AllocationProperties.ofDevice(0, MemHandleType.NONE));
    driver.virtual().memMap(address, PAGE, 0, handle);
    driver.virtual().memSetAccess(address, PAGE, MemLocationType.DEVICE, new int[] {0}, 3);
    assertGoesOn(address + PAGE - 4, EQUAL, 9, 8, 9);
  }

  @Test
  void wordsThatAreNone_areRefused() {
    for (int off = 1; off < 4; off++) {
      long address = memory + off;
      String message = "address: 0x%x (expected: a multiple of 4)".formatted(address);
      assertFails(INVALID, message, () -> await(address, 0, EQUAL));
    }
    assertFails(INVALID, "flags: 4 (expected: 0 to 3)", () -> await(memory, 0, 4));
    assertFails(INVALID, "flags: -1", () -> await(memory, 0, -1));
    assertFails(INVALID, "address", () -> await(memory + 64, 0, EQUAL));
    long managed = driver.memory().memAllocManaged(0, 64, 1).address();
    assertFails(INVALID, "is managed memory", () -> await(managed, 0, EQUAL));
    driver.streams().streamSynchronize(0, waiting);
  }

  @Test
  void streamThatWaitsAtMemoryThatIsFreed_losesTheDevice() {
    long word = driver.ordered().memAllocAsync(0, 4, writing);
    set(word, 1);
    await(word, 2, EQUAL);
    driver.ordered().memFreeAsync(0, word, writing);
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "waits at memory that was freed",
        () -> {
          driver.streams().streamSynchronize(0, writing);
          driver.streams().streamSynchronize(0, waiting);
        });
  }

  private static boolean isMet(int word, int value, int flags) {
    return switch (flags) {
      case GREATER_OR_EQUAL -> word - value >= 0;
      case EQUAL -> word == value;
      case AND -> (word & value) != 0;
      default -> ~(word | value) != 0;
    };
  }

  /** One that fulfils it; null if none does. */
  private static @Nullable Integer meeting(int value, int flags) {
    return switch (flags) {
      case GREATER_OR_EQUAL, EQUAL -> Integer.valueOf(value);
      case AND -> value == 0 ? null : Integer.valueOf(value & -value);
      default -> value == -1 ? null : Integer.valueOf(0);
    };
  }

  /** A device that does all it can at once stands at each word that does not fulfil it. */
  @Test
  void stream_goesOnAtAWordThatFulfilsIt_andAtNoOther() {
    int[] values = {0, 1, 2, -1, ~3, 0x5555_5555, Integer.MIN_VALUE, Integer.MAX_VALUE};
    try (SimulatedDriver eager =
        SimulatedDriver.open(SimulatedOptions.parse("pace=eager").withMemoryBytes(64 * MIB))) {
      MemorySegment registered = Arena.ofAuto().allocate(4, 4);
      eager.memory().memHostRegister(0, registered, 0);
      long[] words = {
        eager.memory().memAlloc(0, 4),
        eager.memory().memHostAlloc(0, 4, 0).address(),
        registered.address(),
      };
      long stream = eager.streams().streamCreateWithPriority(0, 1, 0);
      for (long word : words) {
        for (int flags = GREATER_OR_EQUAL; flags <= NOR; flags++) {
          for (int value : values) {
            for (int content : values) {
              Integer last = meeting(value, flags);
              if (last != null) {
                fill(eager, word, content);
                eager.streams().streamWaitValue32(0, stream, word, value, flags);
                if (isMet(content, value, flags)) {
                  eager.streams().streamSynchronize(0, stream);
                } else {
                  assertStands(eager, stream);
                }
                fill(eager, word, last);
                eager.streams().streamSynchronize(0, stream);
              }
            }
          }
        }
      }
    }
  }

  /** The device looks at a word that is not its own from time to time only. */
  private static void assertStands(SimulatedDriver on, long stream) {
    for (int i = 0; i < 3; i++) {
      LockSupport.parkNanos(20_000);
      assertThat(on.streams().streamQuery(0, stream)).isFalse();
    }
  }

  private static void fill(SimulatedDriver on, long word, int content) {
    on.transfers().memsetD32Async(0, word, content, 1, 0);
    on.streams().streamSynchronize(0, 0);
  }
}
