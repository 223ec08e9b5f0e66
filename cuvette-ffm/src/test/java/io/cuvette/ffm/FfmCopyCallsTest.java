package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Copies of rows and batches of copies reach their function with each argument in place. */
class FfmCopyCallsTest extends StubDriverTest {
  private static final long BIG = 0x7654_3210_fedcL;
  private static final long[] TARGETS = {BIG, 0x10};
  private static final long[] SOURCES = {0x20, BIG + 1};
  private static final long[] BYTES = {1L << 40, 7};

  private static String batch(int version) {
    return "cuMemcpyBatchAsync@%d(76543210fedc 20 1099511627776, 10 76543210fedd 7, 2,"
            .formatted(version)
        + " {1, 0 0, 0 0, 0} from 0, 1, 5)";
  }

  private static void copy(CudaDriver driver) {
    driver.transfers().memcpyBatchAsync(1, TARGETS, SOURCES, BYTES, 5);
  }

  @Test
  void rows_areCopiedBetweenUnifiedMemory() {
    BoxCopy.Side target = new BoxCopy.Side(BIG, 1L << 30, 9);
    BoxCopy.Side source = new BoxCopy.Side(0x20, 64, 8);
    driver.transfers().memcpy3DAsync(1, new BoxCopy(target, source, 60, 7, 3), 5);
    noted("cuMemcpy3DAsync@3020({4 76543210fedc 1073741824 9, 4 20 64 8, 60 7 3, 0}, 5) in c001");
  }

  @Test
  void batch_isOneCall_inOrderOfTheStream() {
    copy(driver);
    assertThat(callsInAnyContext()).contains(batch(13000));
  }

  @Test
  void olderForm_saysWhichCopyFailed(@TempDir Path folder) {
    StubLibrary old = StubLibrary.compile(folder);
    old.version(12_090);
    try (CudaDriver other = old.open()) {
      copy(other);
      assertThat(old.calls()).anySatisfy(call -> assertThat(call).contains(batch(12080)));
      old.fail("cuMemcpyBatchAsync", 1);
      assertThatThrownBy(() -> copy(other))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_VALUE))
          .hasMessageEndingWith("copy 1 of the batch failed");
      for (int failed : new int[] {0, 1, 41}) {
        old.answer(0, failed + 1);
        assertThatThrownBy(() -> copy(other))
            .hasMessageEndingWith("copy %d of the batch failed", failed);
      }
      old.answer(0, -1);
      assertThatThrownBy(() -> copy(other))
          .as("none of them alone")
          .hasMessageContaining("cuMemcpyBatchAsync(count=2, stream=0x5, device=1)")
          .hasMessageNotContaining("of the batch");
    }
  }

  @Test
  void driverWithoutTheCall_copiesOneByOne(@TempDir Path folder) {
    StubLibrary old = StubLibrary.compile(folder);
    old.version(12_070);
    try (CudaDriver other = old.open()) {
      copy(other);
      assertThat(old.calls())
          .anySatisfy(call -> assertThat(call).contains("(76543210fedc, 20, 1099511627776, 5)"))
          .anySatisfy(call -> assertThat(call).contains("(10, 76543210fedd, 7, 5)"))
          .noneSatisfy(call -> assertThat(call).contains("Batch"));
      old.fail("cuMemcpyAsync", 1);
      assertThatThrownBy(() -> copy(other))
          .hasMessageEndingWith("the first 0 of a batch of 2 copies are queued");
    }
  }
}
