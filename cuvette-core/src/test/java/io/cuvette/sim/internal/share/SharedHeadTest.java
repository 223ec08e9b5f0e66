package io.cuvette.sim.internal.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.sim.internal.base.SimRefusal;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class SharedHeadTest {
  private static final long BYTES = 3 << 20;

  @ParameterizedTest
  @EnumSource
  void headThatWasWritten_isReadAsItWas(SharedFile.Kind kind) {
    SharedPlace place = new SharedPlace(UUID.randomUUID(), 1, 7);
    SharedHead head = SharedHead.of(place, BYTES);
    MemorySegment mapped = Arena.ofAuto().allocate(kind.headBytes, 8);
    head.write(mapped, kind, 42);

    assertThat(SharedHead.read(mapped, kind, kind.headBytes + BYTES, BYTES)).isEqualTo(head);
  }

  private static SharedHead read(MemorySegment mapped, long fileBytes) {
    return SharedHead.read(mapped, SharedFile.Kind.MEMORY, fileBytes, BYTES);
  }

  /** Each of its fields may have been written by anybody. */
  @Test
  void headOfSomethingElse_isRefused() {
    SharedFile.Kind kind = SharedFile.Kind.MEMORY;
    long fileBytes = kind.headBytes + BYTES;
    SharedHead head = SharedHead.of(new SharedPlace(UUID.randomUUID(), 1, 7), BYTES);
    MemorySegment mapped = Arena.ofAuto().allocate(kind.headBytes, 8);
    for (long field : new long[] {0, 8, 12, 64}) {
      head.write(mapped, kind, 42);
      assertThat(read(mapped, fileBytes)).isEqualTo(head);
      mapped.set(ValueLayout.JAVA_INT, field, mapped.get(ValueLayout.JAVA_INT, field) ^ 8);
      assertThatExceptionOfType(SimRefusal.class).isThrownBy(() -> read(mapped, fileBytes));
    }
    head.write(mapped, SharedFile.Kind.ALLOCATION, 42);
    assertThatExceptionOfType(SimRefusal.class).isThrownBy(() -> read(mapped, fileBytes));
  }

  /** Memory has some bytes, and not more than a device; the others may have any number. */
  @ParameterizedTest
  @EnumSource
  void sizeThatNoMemoryHas_isRefused(SharedFile.Kind kind) {
    SharedPlace place = new SharedPlace(UUID.randomUUID(), 1, 7);
    MemorySegment mapped = Arena.ofAuto().allocate(kind.headBytes, 8);
    boolean isMemory = kind == SharedFile.Kind.MEMORY || kind == SharedFile.Kind.ALLOCATION;
    for (long bytes : new long[] {0, 1, BYTES, BYTES + 1, Long.MAX_VALUE - kind.headBytes}) {
      SharedHead head = SharedHead.of(place, bytes);
      head.write(mapped, kind, 42);
      long fileBytes = kind.headBytes + bytes;
      if (isMemory && (bytes == 0 || bytes > BYTES)) {
        assertThatExceptionOfType(SimRefusal.class)
            .isThrownBy(() -> SharedHead.read(mapped, kind, fileBytes, BYTES));
      } else {
        assertThat(SharedHead.read(mapped, kind, fileBytes, BYTES)).isEqualTo(head);
      }
    }
  }
}
