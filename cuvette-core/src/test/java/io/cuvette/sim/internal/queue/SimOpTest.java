package io.cuvette.sim.internal.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Operations: what they say they wait for, what they keep once they are done, and their queues. */
class SimOpTest {
  private final SimDevice device = new SimDevice(0, 1, 0, 2);
  private final SimStream stream = new SimStream(device, 7, SimStream.NON_BLOCKING, 0);
  private final SimStream other = new SimStream(device, 8, SimStream.NON_BLOCKING, 0);

  private static SimOp appended(SimStream to, SimOp op) {
    to.append(op);
    return op;
  }

  /** Events keep the last one of their stream for as long as the program keeps them. */
  @Test
  void operationThatIsDone_keepsNothing() {
    SimOp first = appended(stream, SimOp.host(stream, () -> {}, 0));
    SimOp behind = appended(other, SimOp.waiting(other, first, 0));
    SimOp outside =
        appended(other, SimOp.waitingOutside(other, () -> true, () -> {}, 0).waitsFor(() -> "it"));
    List<String> done = new ArrayList<>();
    HeldMemory held = () -> done.add("held");
    outside.holding(List.of(held));
    outside.whenDone(() -> done.add("when done"));
    for (SimOp op : List.of(first, behind, outside)) {
      assertThat(op.finish(5)).isEmpty();
      assertThat(op.isDone()).isTrue();
      assertThat(op.endNanos()).isEqualTo(5);
      assertThat(op.hostFunction()).isNull();
      assertThat(op.dependency()).isNull();
      assertThat(op.outside()).isNull();
      assertThat(op.held()).isEmpty();
      op.work().run();
    }
    assertThat(done).containsExactly("when done", "held");
    assertThat(outside.finish(6)).isEmpty();
    assertThat(done).as("once").hasSize(2);
  }

  @Test
  void operation_givesTheQueuesThatItBlocks() {
    SimOp op = SimOp.point(stream, 0);
    op.block(stream.queue);
    op.block(other.queue);
    assertThat(op.finish(1)).containsExactly(stream.queue, other.queue);
    assertThat(op.finish(1)).isEmpty();
  }

  @Test
  void operation_saysWhatItIs() {
    SimOp first = appended(stream, SimOp.work(stream, () -> {}, 0, 0));
    assertThat(first.number()).isEqualTo(1);
    assertThat(first.describe()).isEqualTo("work of the device");
    assertThat(SimOp.host(stream, () -> {}, 0).describe()).isEqualTo("a host function");
    assertThat(SimOp.waiting(other, first, 0).describe())
        .isEqualTo("a wait for operation 1 of the stream of ID 7");
    SimOp outside = SimOp.waitingOutside(stream, () -> true, () -> {}, 0);
    assertThat(outside.describe()).isEqualTo("a wait for the host");
    assertThat(outside.waitsFor(() -> "this wait").describe()).isEqualTo("this wait");
    assertThat(outside.again(other, 3).describe()).isEqualTo("this wait");
  }

  @Test
  void operation_startsBehindItsStream_itsCall_andWhatItWaitsFor() {
    SimOp first = SimOp.point(stream, 0);
    first.finish(50);
    assertThat(SimOp.point(other, 20).startNanos(10)).isEqualTo(20);
    assertThat(SimOp.point(other, 20).startNanos(30)).isEqualTo(30);
    assertThat(SimOp.waiting(other, first, 20).startNanos(30)).isEqualTo(50);
    assertThat(SimOp.waiting(other, first, 20).startNanos(60)).isEqualTo(60);
  }

  @Test
  void queue_holdsUpOtherStreamsAndThreads_andNoneOfItsOwnStream() {
    SimQueue queue = new SimQueue(1, "a queue", 2);
    assertThat(queue.holdsUpOthers()).isFalse();
    assertThat(queue.add(SimOp.point(stream, 0))).isTrue();
    assertThat(queue.add(SimOp.point(stream, 0))).isFalse();
    assertThat(queue.holdsUpOthers()).isFalse();
    assertThat(queue.isOverfull()).isFalse();
    queue.waiting = 1;
    assertThat(queue.holdsUpOthers()).isTrue();
    queue.waiting = 0;
    queue.add(SimOp.point(other, 0));
    assertThat(queue.isOverfull()).isTrue();
    assertThat(queue.holdsUpOthers()).isTrue();
  }

  @Test
  void streams_takeQueuesInTurn_exceptThoseNobodySees() {
    SimDevice two = new SimDevice(3, 1, 2, 5);
    SimQueue[] queues = new SimQueue[4];
    for (int i = 0; i < queues.length; i++) {
      queues[i] = new SimStream(two, 10 + i, 0, 0).queue;
    }
    assertThat(queues[0]).isNotSameAs(queues[1]).isSameAs(queues[2]);
    assertThat(queues[1]).isSameAs(queues[3]).isSameAs(two.legacy().queue);
    SimQueue hidden = new SimStream(two, 20, SimStream.HIDDEN, 0).queue;
    assertThat(hidden).isNotIn((Object[]) queues);
    assertThat(stream.queue).isNotSameAs(other.queue);
    assertThat(queues[0].id).isNotEqualTo(queues[1].id).isNegative();
  }

  /** By these an order is chosen, as by those of streams, which are positive. */
  @Test
  void sharedQueuesOfAllDevices_haveNumbersOfTheirOwn() {
    List<Long> ids = new ArrayList<>();
    for (int index = 0; index < 3; index++) {
      SimDevice shared = new SimDevice(index, 1, 32, 5);
      for (int i = 0; i < 32; i++) {
        ids.add(new SimStream(shared, 10 + i, 0, 0).queue.id);
      }
    }
    assertThat(ids).doesNotHaveDuplicates().allMatch(id -> id < 0);
  }

  @Test
  void legacyStream_waitsForOthersThatBlock_andIsNoneOfThem() {
    SimStream legacy = device.legacy();
    SimStream blocking = new SimStream(device, 9, 0, 0);
    assertThat(List.of(legacy.isBlocking(), blocking.isBlocking(), stream.isBlocking()))
        .containsExactly(false, true, false);
    SimOp first = appended(legacy, SimOp.point(legacy, 0));
    device.added(legacy);
    assertThat(device.hasBlockingEnds()).isFalse();
    assertThat(legacy.legacyToWaitFor()).isNull();
    assertThat(stream.legacyToWaitFor()).isNull();
    assertThat(blocking.legacyToWaitFor()).isSameAs(first);
    assertThat(blocking.legacyToWaitFor()).as("once").isNull();
  }

  @Test
  void device_isBusyUntilTheLastEndOfItsStreams_whicheverRanLast() {
    stream.nanos = 50;
    device.removed(stream);
    other.nanos = 20;
    device.removed(other);
    assertThat(device.lastEndNanos()).isEqualTo(50);
    other.nanos = 60;
    device.removed(other);
    assertThat(device.lastEndNanos()).isEqualTo(60);
  }

  /** What fails behind it, fails because of it. */
  @Test
  void deviceThatFailedTwice_saysWhatItFailedWithFirst() {
    SimRefusal first = new SimRefusal(CudaStatus.ILLEGAL_ADDRESS, "first");
    device.fail(first);
    device.fail(new SimRefusal(CudaStatus.LAUNCH_FAILED, "second"));
    assertThatThrownBy(device::checkWorks).isSameAs(first);
  }
}
