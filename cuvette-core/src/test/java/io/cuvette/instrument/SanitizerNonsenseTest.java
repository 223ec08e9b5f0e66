package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.UserObject;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Programs that call anything in any order, with the same few addresses and handles: they get what
 * the driver answers, whatever is wrong, and each mistake can be told.
 */
class SanitizerNonsenseTest {
  private static final MemorySegment HOST = Arena.ofAuto().allocate(0x400);

  private static final long[] NUMBERS = {
    0, 0x1000, 0x1080, 0x1100, 0x2000, HOST.address(), HOST.address() + 0x80
  };

  private static final long[] SIZES = {0, 1, 0x80, 0x100, 0x200};

  private static final List<Method> CALLS =
      DriverProxy.methods().stream()
          .filter(DriverProxy::isCall)
          .sorted(Comparator.comparing(Method::toString))
          .toList();

  private final AtomicInteger wrong = new AtomicInteger();
  private Random random = new Random(0);
  private final List<CudaException> refusals = new ArrayList<>();
  private @Nullable Method asked;
  private @Nullable Object given;

  private final SanitizerDriver driver =
      SanitizerDriver.reporting(
          DriverProxy.of(this::answer),
          report -> {
            assertNamesAll(report);
            wrong.incrementAndGet();
          });

  /** Whether what is wrong and each call that has to do with it have all their arguments. */
  private static void assertNamesAll(SanitizerReport report) {
    assertThat(report.toString()).doesNotContain("null");
    assertThat(report.sites())
        .isNotEmpty()
        .allSatisfy(site -> assertThat(site.call()).doesNotContain("null"));
  }

  private @Nullable Object answer(Method method, Object[] arguments) {
    if (DriverProxy.isCall(method) && random.nextInt(20) == 0) {
      refusals.add(new CudaException(CudaStatus.UNKNOWN.code(), method.getName()));
      throw refusals.getLast();
    }
    Object value = method.getReturnType() == void.class ? null : value(method.getReturnType());
    if (method.equals(asked)) { // not what the sanitizer asks by itself afterwards
      given = value;
      asked = null;
    }
    return value;
  }

  private long number() {
    return random.nextInt(3) == 0
        ? SIZES[random.nextInt(SIZES.length)]
        : NUMBERS[random.nextInt(NUMBERS.length)];
  }

  private Object value(Class<?> type) {
    return switch (type.getSimpleName()) {
      case "long" -> number();
      case "int" -> random.nextInt(3);
      case "boolean" -> random.nextBoolean();
      case "MemorySegment" -> {
        long from = random.nextInt(4) * 0x80L;
        yield HOST.asSlice(from, Math.min(SIZES[random.nextInt(SIZES.length)], 0x400 - from));
      }
      case "long[]" -> new long[] {number(), number()};
      case "int[]" -> new int[] {random.nextInt(3)};
      case "UserObject" -> new UserObject(number(), random::nextBoolean);
      case "AddedNode" -> AddedNode.plain(number());
      case "GraphNodeParams" -> new GraphNodeParams.Free(number());
      default -> Samples.of(type, 1 + random.nextInt(3));
    };
  }

  private void tell(BlockListener listener) {
    BlockListener.Block block =
        new BlockListener.Block(1 + random.nextInt(3), number(), SIZES[random.nextInt(5)]);
    switch (random.nextInt(8)) {
      case 0 -> listener.blockAllocated(block);
      case 1 -> listener.blockAllocated(block, 0, number());
      case 2 -> listener.blockFreed(block);
      case 3 -> listener.usedElsewhere(block.address(), block.bytes(), 0, number());
      case 4 -> listener.hostAccess(block.address(), block.bytes(), random.nextBoolean());
      case 5 -> listener.hostCopy(block.address(), block.bytes(), number());
      case 6 -> driver.blockAllocated(block.address(), block.bytes());
      default -> driver.blockFreed(0, block.address(), number());
    }
  }

  private void call(Method method) throws Throwable {
    asked = method;
    refusals.clear();
    Object[] arguments = new Object[method.getParameterCount()];
    for (int i = 0; i < arguments.length; i++) {
      arguments[i] = value(method.getParameterTypes()[i]);
    }
    try {
      Object result = DriverProxy.forward(driver, method, arguments);
      if (!(result instanceof UserObject)) { // which learns when the object is gone
        assertThat(result).as("%s", method).isEqualTo(given);
      }
    } catch (CudaException e) {
      assertThat(refusals).contains(e);
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void anyCalls_areAnsweredByTheDriver_andEachMistakeIsTold(long seed) throws Throwable {
    random = new Random(seed);
    for (int i = 0; i < 4_000; i++) {
      if (random.nextInt(10) == 0) {
        tell(driver.blockListener());
      } else {
        call(CALLS.get(random.nextInt(CALLS.size())));
      }
    }
    assertThat(wrong).hasValueGreaterThan(500);
    assertThat(driver.leaks()).isNotEmpty().allSatisfy(SanitizerNonsenseTest::assertNamesAll);
  }
}
