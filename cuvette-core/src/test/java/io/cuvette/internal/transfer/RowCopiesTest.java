package io.cuvette.internal.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.TransferCalls;
import io.cuvette.instrument.ForwardingTransfers;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** In which calls rows are queued, and what is said of those before one that fails. */
class RowCopiesTest {
  private static final long TARGET = 1L << 40;
  private static final long SOURCE = 1L << 41;
  private static final long FAR = BoxCopy.MAX_PITCH + 1;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final List<String> calls = new ArrayList<>();
  private int failing = Integer.MAX_VALUE;
  private final TransferCalls driver =
      new ForwardingTransfers(cuda.driver().transfers()) {
        @Override
        public void memcpy3DAsync(int device, BoxCopy copy, long stream) {
          note("box of %d rows".formatted(copy.allRows()));
        }

        @Override
        public void memcpyAsync(int device, long to, long from, long bytes, long stream) {
          note("%d to %d, %d bytes".formatted(from - SOURCE, to - TARGET, bytes));
        }
      };

  private void note(String call) {
    if (calls.size() == failing) {
      throw new CudaException(CudaStatus.INVALID_VALUE, "cuMemcpyAsync", "on purpose");
    }
    calls.add(call);
  }

  @AfterEach
  void close() {
    cuda.close();
  }

  private static BoxCopy rows(long targetPitch, long sourcePitch, long height, long depth) {
    return new BoxCopy(
        new BoxCopy.Side(TARGET, targetPitch, height),
        new BoxCopy.Side(SOURCE, sourcePitch, height + 1),
        8,
        height,
        depth);
  }

  private List<String> queued(BoxCopy copy) {
    calls.clear();
    RowCopies.queue(driver, 0, copy, 0);
    return List.copyOf(calls);
  }

  @Test
  void rowsOfPitchesThatADriverTakes_areOneCall() {
    assertThat(queued(rows(BoxCopy.MAX_PITCH, 8, 2, 1))).containsExactly("box of 2 rows");
    assertThat(queued(rows(8, BoxCopy.MAX_PITCH, 1, 2))).containsExactly("box of 2 rows");
    assertThat(queued(rows(8, 16, 1, 1))).containsExactly("0 to 0, 8 bytes");
  }

  @Test
  void rowsOfALargerPitch_areOneCallForEach() {
    assertThat(queued(rows(FAR, 16, 2, 2)))
        .containsExactly(
            "0 to 0, 8 bytes",
            "16 to %d, 8 bytes".formatted(FAR),
            "48 to %d, 8 bytes".formatted(2 * FAR),
            "64 to %d, 8 bytes".formatted(3 * FAR));
    assertThat(queued(rows(8, FAR, 2, 1)))
        .containsExactly("0 to 0, 8 bytes", "%d to 8, 8 bytes".formatted(FAR));
    assertThat(queued(rows(FAR, FAR, 1, 1))).containsExactly("0 to 0, 8 bytes");
    assertThat(queued(rows(FAR, FAR, 0, 1))).isEmpty();
  }

  /** Of one row there is nothing to say: none is queued. */
  @Test
  void rowThatFails_isSaidToComeAfterThoseBefore_ofSeveral() {
    for (int rows = 1; rows <= 3; rows++) {
      for (failing = 0; failing < rows; failing++) {
        String which =
            rows == 1
                ? "on purpose"
                : "copy of %d rows of 8 bytes: the first %d are queued, no other"
                    .formatted(rows, failing);
        BoxCopy copy = rows(FAR, 8, rows, 1);
        assertThatThrownBy(() -> queued(copy))
            .as("%d of %d", failing, rows)
            .isInstanceOf(CudaException.class)
            .message()
            .contains(which)
            .satisfies(text -> assertThat(text.contains("queued")).isEqualTo(copy.allRows() > 1));
        assertThat(calls).hasSize(failing);
      }
    }
  }
}
