package io.cuvette.sim.internal.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaStatus;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Handles of objects of each kind, beside a map. */
class HandleTableTest {
  private static final int STEPS = 3_000;
  private static final int DEVICE_SHIFT = 56;

  private static void assertIsAs(HandleTable<Integer> table, Map<Long, Integer> model) {
    assertThat(table.size()).isEqualTo(model.size());
    List<Integer> all = new ArrayList<>();
    table.forEach(all::add);
    assertThat(all).containsExactlyInAnyOrderElementsOf(model.values());
    model.forEach((handle, item) -> {
      assertThat(table.find(handle)).isEqualTo(item);
      assertThat(table.get(handle)).isEqualTo(item);
    });
  }

  @ParameterizedTest
  @EnumSource
  void handle_findsItsObjectUntilThatIsRemoved_andIsNotGivenAgainUnlessItMayBe(HandleKind kind) {
    for (boolean reuses : new boolean[] {false, true}) {
      SplittableRandom random = new SplittableRandom(kind.name().length());
      HandleTable<Integer> table = new HandleTable<>(kind, reuses);
      Map<Long, Integer> model = new HashMap<>();
      Set<Long> given = new HashSet<>();
      int again = 0;
      for (int step = 0; step < STEPS; step++) {
        if (model.isEmpty() || (model.size() < 8 && random.nextBoolean())) {
          long handle = table.add(step);
          assertThat(HandleKind.of(handle)).isEqualTo(kind);
          assertThat(model.put(handle, step)).as("one that is live").isNull();
          again += given.add(handle) ? 0 : 1;
        } else {
          long handle = List.copyOf(model.keySet()).get(random.nextInt(model.size()));
          assertThat(table.remove(handle)).isEqualTo(model.remove(handle));
          assertThat(table.find(handle)).isNull();
          refused(kind, handle, "one that was destroyed or never made", table);
        }
        if (step % 100 == 0) {
          assertIsAs(table, model);
        }
      }
      assertThat(again > 0).isEqualTo(reuses);
      given.removeAll(model.keySet());
      given.forEach(gone -> assertThat(table.find(gone)).isNull());
    }
  }

  private static void refused(
      HandleKind kind, long handle, String what, HandleTable<Integer> table) {
    assertThat(table.find(handle)).isNull();
    int before = table.size();
    for (int call = 0; call < 2; call++) {
      boolean removes = call > 0;
      assertThatExceptionOfType(SimRefusal.class)
          .isThrownBy(() -> {
            Object _ = removes ? table.remove(handle) : table.get(handle);
          })
          .satisfies(e -> {
            assertThat(e.text()).contains("0x%x".formatted(handle)).endsWith("is " + what + ")");
            boolean isValue =
                switch (kind) {
                  case POOL, KERNEL, NODE, CONDITION, ALLOCATION -> true;
                  default -> false;
                };
            assertThat(e.status())
                .isEqualTo(isValue ? CudaStatus.INVALID_VALUE : CudaStatus.INVALID_HANDLE);
          });
    }
    assertThat(table.size()).isEqualTo(before);
  }

  @ParameterizedTest
  @EnumSource
  void valueThatIsNoHandleOfTheKind_isRefused_andSaysWhatItIs(HandleKind kind) {
    HandleTable<Integer> table = new HandleTable<>(kind, false);
    long live = table.add(7);
    String never = "one that was destroyed or never made";
    for (long other : new long[] {live + 1, live + 16, live - 16, live + (1L << 32)}) {
      refused(kind, other, never, table);
    }
    for (HandleKind other : HandleKind.values()) {
      if (other != kind) {
        assertThatExceptionOfType(SimRefusal.class)
            .isThrownBy(() -> table.get(other.handle(0, 0)))
            .satisfies(e -> assertThat(e.text()).matches(".*this is an? .*"))
            .satisfies(e -> assertThat(e.text()).doesNotContain(never));
      }
    }
    for (int device : new int[] {0, 1, Addresses.MAX_DEVICES - 1}) {
      long address = ((device + 1L) << DEVICE_SHIFT) + 512;
      refused(kind, address, "an address of device " + device, table);
    }
    refused(kind, Addresses.VIRTUAL_START, "an address of virtual memory", table);
    for (long none : new long[] {0, 1, 2, -1, 4096, Long.MIN_VALUE, 0x7FFF_0000_1000L}) {
      refused(kind, none, "no handle", table);
    }
    assertThat(table.get(live)).isEqualTo(7);
  }

  @Test
  void kinds_haveHandlesThatNoOtherHas() {
    Set<Long> all = new HashSet<>();
    for (HandleKind kind : HandleKind.values()) {
      for (int index = 0; index < 3; index++) {
        for (int generation : new int[] {0, 1, 0xFF_FFFF}) {
          long handle = kind.handle(generation, index);
          assertThat(all.add(handle)).isTrue();
          assertThat(HandleKind.of(handle)).isEqualTo(kind);
          assertThat(HandleKind.index(handle)).isEqualTo(index);
          assertThat(Addresses.deviceOf(handle)).isEqualTo(-1);
          assertThat(Addresses.isVirtual(handle)).isFalse();
        }
      }
    }
    assertThat(HandleKind.of(0)).isNull();
  }

  @Test
  void addressOfADevice_saysWhichOne_andNoOtherAddressDoes() {
    for (int device = 0; device < Addresses.MAX_DEVICES; device++) {
      long first = (device + 1L) << DEVICE_SHIFT;
      assertThat(Addresses.deviceOf(first)).isEqualTo(device);
      assertThat(Addresses.deviceOf(first + (1L << DEVICE_SHIFT) - 1)).isEqualTo(device);
    }
    for (long top : new long[] {0, Addresses.MAX_DEVICES + 1, 0x30, 0x51, 0x7F, 0xFF}) {
      assertThat(Addresses.deviceOf(top << DEVICE_SHIFT)).isEqualTo(-1);
      assertThat(Addresses.isVirtual(top << DEVICE_SHIFT)).isEqualTo(top == 0x30);
    }
  }
}
