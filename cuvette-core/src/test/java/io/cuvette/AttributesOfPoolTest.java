package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.driver.PoolProperties;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.driverpool.AttributesOfPool;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.driverpool.ImportedPool;
import io.cuvette.internal.driverpool.MadePool;
import io.cuvette.internal.driverpool.PoolOrigin;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Each attribute of pools of each kind, with drivers of each age, and of pools that are closed. */
@Timeout(60)
class AttributesOfPoolTest {
  private static final int FIRST = 1;
  private static final int LAST = 8;

  /** The first of those that count bytes, and the version that has them. */
  private static final int BYTES = MemPoolAttribute.RESERVED_MEM_CURRENT;

  private static final int VERSION = 11030;
  private static final PoolProperties PROPERTIES =
      new PoolProperties(MemAllocationType.PINNED, 0, MemLocationType.DEVICE, 0, 0);

  private final List<String> calls = new ArrayList<>();
  private int version = VERSION;
  private CudaStatus status = CudaStatus.SUCCESS;
  private final FakeDescriptors descriptors = new FakeDescriptors();
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(this::over));
  private final DriverPools pools = cuda.engine().driverPools();

  @AfterEach
  void close() {
    status = CudaStatus.SUCCESS;
    cuda.close();
  }

  /** The value of an attribute tells which it is. */
  private CudaDriver over(CudaDriver driver) {
    return DriverProxy.of((method, arguments) -> {
      String name = method.getName();
      if (name.equals("memPoolGetAttribute") || name.equals("memPoolSetAttribute")) {
        calls.add(name + " " + arguments[1]);
        if (status != CudaStatus.SUCCESS) {
          throw new CudaException(status, name, "the test's");
        }
      }
      return switch (name) {
        case "driverGetVersion" -> version;
        case "memPoolImportFromShareableHandle" -> driver.pools().memPoolCreate(PROPERTIES);
        case "memPoolGetAttribute" -> 100L + (int) arguments[1];
        case "memPoolSetAttribute" -> null;
        default -> DriverProxy.forward(driver, method, arguments);
      };
    });
  }

  private DriverPool made() {
    return MadePool.createKeeping(pools, PROPERTIES);
  }

  private DriverPool imported() {
    try (PoolHandle handle = PoolHandle.own(descriptors, descriptors.memoryFile("pool", 0), null)) {
      return ImportedPool.imported(pools, cuda.device(0).core(), PoolOrigin.of(handle, pools));
    }
  }

  @Test
  void attributes_areTheDrivers_asFarAsItIsNewEnough() {
    DriverPool pool = made();
    AttributesOfPool attributes = new AttributesOfPool(pool);
    for (int each : new int[] {VERSION - 1, VERSION, VERSION + 1}) {
      version = each;
      for (int i = FIRST; i <= LAST; i++) {
        int attribute = i;
        calls.clear();
        if (each < VERSION && attribute >= BYTES) {
          for (Runnable use :
              List.<Runnable>of(
                  () -> attributes.get(attribute), () -> attributes.set(attribute, 1))) {
            assertThatThrownBy(use::run)
                .isInstanceOfSatisfying(
                    CudaException.class,
                    e -> assertThat(e.status()).isEqualTo(CudaStatus.CALL_REQUIRES_NEWER_DRIVER))
                .hasMessageContaining("attribute=" + attribute)
                .hasMessageContaining("CUDA 11.2 (expected: >= 11.3)");
          }
          assertThat(calls).as("it would only say that something is wrong").isEmpty();
        } else {
          assertThat(attributes.get(attribute)).isEqualTo(100 + attribute);
          attributes.set(attribute, 1);
          assertThat(calls)
              .containsExactly(
                  "memPoolGetAttribute " + attribute, "memPoolSetAttribute " + attribute);
        }
      }
    }
    assertThat(attributes.reserved()).isEqualTo(100 + MemPoolAttribute.RESERVED_MEM_CURRENT);
    assertThat(attributes.used()).isEqualTo(100 + MemPoolAttribute.USED_MEM_CURRENT);
    pool.close();
  }

  /** A driver says of such a pool no more than that a value is wrong. */
  @Test
  void failureOfAQuestion_isTheDrivers_andExplainedForAPoolOfAnotherProcess() {
    for (DriverPool pool : List.of(made(), imported())) {
      AttributesOfPool attributes = new AttributesOfPool(pool);
      for (CudaStatus each : CudaStatus.values()) {
        if (each == CudaStatus.SUCCESS) {
          continue;
        }
        boolean isExplained = pool instanceof ImportedPool && each == CudaStatus.INVALID_VALUE;
        status = each;
        for (Runnable use :
            List.<Runnable>of(() -> attributes.get(4), () -> attributes.set(4, 1))) {
          assertThatThrownBy(use::run)
              .as("%s of %s", each, pool)
              .isInstanceOfSatisfying(
                  CudaException.class, e -> assertThat(e.status()).isEqualTo(each))
              .satisfies(e ->
                  assertThat(e.getMessage().contains("its process alone can ask about it"))
                      .isEqualTo(isExplained));
        }
      }
      status = CudaStatus.SUCCESS;
      pool.close();
    }
  }

  /** What the driver did not tell then nobody knows. */
  @Test
  void attributesOfAClosedPool_areTheLastThatTheDriverTold() {
    for (boolean told : new boolean[] {true, false}) {
      for (DriverPool pool : List.of(made(), imported())) {
        AttributesOfPool attributes = new AttributesOfPool(pool);
        assertThat(pool.last(FIRST)).as("it is open").isNull();
        status = told ? CudaStatus.SUCCESS : CudaStatus.NOT_SUPPORTED;
        pool.close();
        status = CudaStatus.SUCCESS;
        calls.clear();
        for (int i = FIRST; i <= LAST; i++) {
          int attribute = i;
          if (told && pool instanceof MadePool) {
            assertThat(attributes.get(attribute)).isEqualTo(100 + attribute);
          } else {
            assertThatThrownBy(() -> attributes.get(attribute))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("pool 0x%x is closed", pool.handle());
          }
          assertThatThrownBy(() -> attributes.set(attribute, 1))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("closed");
        }
        assertThat(calls).isEmpty();
      }
    }
  }
}
