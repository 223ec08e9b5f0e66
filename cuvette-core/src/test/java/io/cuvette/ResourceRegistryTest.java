package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.channel.Descriptors;
import io.cuvette.internal.channel.OpenSocket;
import io.cuvette.internal.channel.PoolHandle;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** Which resource stands for a pool of another process, and what its handle owns. */
class ResourceRegistryTest extends OverFakeSharing {
  private static final CountDownLatch NEVER = new CountDownLatch(1);

  @Test
  void registry_givesOneResourceForAUuid() {
    UUID uuid = UUID.randomUUID();
    try (AllocationHandle handle = handle(uuid)) {
      DeviceMemoryResource one = DeviceMemoryResource.fromAllocationHandle(device, handle);
      assertThat(one.uuid()).contains(uuid);
      assertThat(DeviceMemoryResource.fromAllocationHandle(device, handle)).isSameAs(one);
      assertThat(DeviceMemoryResource.fromRegistry(cuda, uuid)).isSameAs(one);
      assertThat(one.register(uuid)).isSameAs(one);
      assertThatThrownBy(() -> one.register(UUID.randomUUID()))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining(uuid.toString());
      assertThatThrownBy(() -> PinnedMemoryResource.fromRegistry(cuda, uuid))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("PinnedMemoryResource");
      assertThatThrownBy(() -> PinnedMemoryResource.fromAllocationHandle(cuda, handle))
          .isInstanceOf(IllegalArgumentException.class);
      one.close();
      assertThatThrownBy(() -> DeviceMemoryResource.fromRegistry(cuda, uuid))
          .isInstanceOf(NoSuchElementException.class)
          .hasMessageContaining(uuid.toString());
      DeviceMemoryResource two = DeviceMemoryResource.fromAllocationHandle(device, handle);
      assertThat(two).isNotSameAs(one);
      two.close();
    }
  }

  /** As of a thread that registers a resource while another one closes it. */
  @Test
  void registryOfAClosedCuda_isClosed() {
    Cuda closed = Cuda.open(CudaOptions.simulated());
    CudaDevice first = closed.device(0);
    closed.close();
    UUID uuid = UUID.randomUUID();
    for (ThrowingCallable call :
        List.<ThrowingCallable>of(
            () -> DeviceMemoryResource.fromRegistry(closed, uuid),
            () -> DeviceMemoryResource.fromRegistry(first, uuid),
            () -> PinnedMemoryResource.fromRegistry(closed, uuid))) {
      assertThatThrownBy(call)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
    }
  }

  @Test
  void resourceClosedMeanwhile_isNotRegistered() {
    UUID uuid = UUID.randomUUID();
    DeviceMemoryResource resource = mapped();
    resource.close();
    ResourceRegistry registry = cuda.registry();
    try (DeviceMemoryResource open = mapped()) {
      PoolHandle handle = open.allocationHandle().core();
      assertThatThrownBy(() -> registry.register(uuid, resource, resource.ending(), handle))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage(resource + " is closed");
      assertThat(registry.find(uuid, handle)).isNull();
      assertThat(registry.register(uuid, open, open.ending(), handle)).isSameAs(open);
      assertThatThrownBy(() -> registry.register(uuid, resource, resource.ending(), handle))
          .isInstanceOf(IllegalStateException.class);
      assertThat(registry.find(uuid, handle)).isSameAs(open);
    }
  }

  @Test
  void register_givesTheEarlierResourceOfThePool() {
    UUID uuid = UUID.randomUUID();
    try (AllocationHandle handle = handle(null);
        DeviceMemoryResource one = DeviceMemoryResource.fromAllocationHandle(device, handle);
        DeviceMemoryResource two = DeviceMemoryResource.fromAllocationHandle(device, handle)) {
      assertThat(one.register(uuid)).isSameAs(one);
      assertThat(one.uuid()).contains(uuid);
      assertThat(one.allocationHandle().uuid()).contains(uuid);
      assertThat(two.register(uuid)).isSameAs(one);
      assertThat(two.uuid()).isEmpty();
    }
    try (DeviceMemoryResource current = new DeviceMemoryResource(device)) {
      assertThatThrownBy(() -> current.register(uuid))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("IPC-enabled");
      assertThatThrownBy(() -> current.importBuffer(descriptor(1, 0, 1)))
          .isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(current::allocationHandle).isInstanceOf(IllegalStateException.class);
      assertThat(current.isIpcEnabled()).isFalse();
      assertThat(current.isMapped()).isFalse();
      assertThat(current.uuid()).isEmpty();
    }
  }

  /** A UUID is a claim: of a process that makes one up, or has heard of that of a third. */
  @Test
  void anotherPoolOfTheSameUuid_isAnother_whoeverComesFirst() {
    UUID uuid = UUID.randomUUID();
    try (AllocationHandle honest = handle(uuid);
        AllocationHandle liar = handle(uuid)) {
      for (List<AllocationHandle> order : List.of(List.of(honest, liar), List.of(liar, honest))) {
        var second = DeviceMemoryResource.fromAllocationHandle(device, order.getLast());
        try (var first = DeviceMemoryResource.fromAllocationHandle(device, order.getFirst())) {
          assertThat(second).isNotSameAs(first);
          assertThat(DeviceMemoryResource.fromAllocationHandle(device, order.getFirst()))
              .isSameAs(first);
          assertThat(DeviceMemoryResource.fromAllocationHandle(device, order.getLast()))
              .isSameAs(second);
          assertThatThrownBy(() -> DeviceMemoryResource.fromRegistry(cuda, uuid))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("2 pools are registered under " + uuid);
          second.close();
          assertThat(DeviceMemoryResource.fromRegistry(cuda, uuid)).isSameAs(first);
        }
      }
    }
  }

  @Test
  void anotherPoolThatIsRegisteredLater_isAnother() {
    UUID uuid = UUID.randomUUID();
    try (DeviceMemoryResource one = mapped();
        DeviceMemoryResource two = mapped()) {
      assertThat(one.register(uuid)).isSameAs(one);
      assertThat(two.register(uuid)).isSameAs(two);
      assertThat(two.uuid()).contains(uuid);
    }
  }

  /** They may come and go for ever. */
  @Test
  void closedResources_areForgotten_whileAnotherOfTheirUuidStays() throws Exception {
    UUID uuid = UUID.randomUUID();
    try (DeviceMemoryResource stays = mapped()) {
      assertThat(stays.register(uuid)).isSameAs(stays);
      for (int i = 0; i < 5; i++) {
        try (DeviceMemoryResource brief = mapped()) {
          assertThat(brief.register(uuid)).isSameAs(brief);
        }
      }
      Field known = ResourceRegistry.class.getDeclaredField("known");
      known.setAccessible(true);
      Map<?, ?> all = (Map<?, ?>) known.get(cuda.registry());
      assertThat((List<?>) all.get(uuid)).as("one, and the last that ended").hasSize(2);
      try (DeviceMemoryResource other = mapped()) {
        assertThat(other.register(UUID.randomUUID())).isSameAs(other);
      }
      assertThat(DeviceMemoryResource.fromRegistry(cuda, uuid)).as("not alone").isSameAs(stays);
    }
  }

  /** Else a descriptor of the one's memory would be taken for that of the other's. */
  @Test
  void memoryOfAPoolThatClaimsAUuid_isAskedForThroughThatPool() {
    UUID uuid = UUID.randomUUID();
    try (AllocationHandle honest = handle(uuid);
        AllocationHandle liar = handle(uuid);
        var one = DeviceMemoryResource.fromAllocationHandle(device, honest);
        var two = DeviceMemoryResource.fromAllocationHandle(device, liar);
        DeviceBuffer buffer = one.importBuffer(descriptor(1, 0, 64))) {
      buffer.fill((byte) 1);
      driver.failing.put("memPoolImportPointer", CudaStatus.INVALID_VALUE); // as a driver does
      assertThatThrownBy(() -> two.importBuffer(descriptor(1, 0, 64)))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("another pool");
    }
  }

  /** Where the system cannot compare files, there is nothing but the UUID. */
  @Test
  void systemThatComparesNoFiles_believesTheUuid() {
    descriptors.tellsFilesApart = false;
    UUID uuid = UUID.randomUUID();
    try (AllocationHandle one = handle(uuid);
        AllocationHandle two = handle(uuid);
        AllocationHandle raw = handle(null);
        var resource = DeviceMemoryResource.fromAllocationHandle(device, one)) {
      assertThat(DeviceMemoryResource.fromAllocationHandle(device, two)).isSameAs(resource);
      try (var other = DeviceMemoryResource.fromAllocationHandle(device, raw)) {
        assertThat(other).isNotSameAs(resource);
      }
    }
  }

  @Test
  void registry_keepsNothingReachable() throws Exception {
    UUID uuid = UUID.randomUUID();
    Thread forgetting =
        Thread.ofPlatform()
            .start(() -> {
              try (AllocationHandle handle = handle(uuid)) {
                DeviceMemoryResource.fromAllocationHandle(device, handle);
              }
            });
    forgetting.join();
    for (int i = 0; i < 600 && driver.poolsOpen.get() > 0; i++) {
      System.gc();
      boolean _ = NEVER.await(50, TimeUnit.MILLISECONDS); // the collector's thread is another
      cuda.leaksFound();
    }
    assertThat(driver.poolsOpen).as("a forgotten pool is destroyed").hasValue(0);
    assertThatThrownBy(() -> DeviceMemoryResource.fromRegistry(cuda, uuid))
        .isInstanceOf(NoSuchElementException.class);
  }

  @Test
  void threadsThatImportOnePool_getOneResource() throws Exception {
    UUID uuid = UUID.randomUUID();
    try (AllocationHandle handle = handle(uuid);
        var threads = Executors.newFixedThreadPool(8)) {
      List<Callable<DeviceMemoryResource>> work = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        work.add(() -> DeviceMemoryResource.fromAllocationHandle(device, handle));
      }
      List<DeviceMemoryResource> found = new ArrayList<>();
      for (Future<DeviceMemoryResource> each : threads.invokeAll(work)) {
        found.add(each.get());
      }
      assertThat(found).allMatch(each -> each == found.getFirst());
      assertThat(driver.poolsOpen).hasValue(1);
      found.getFirst().close();
    }
  }

  @Test
  void threadsThatImportOnePool_askTheDriverOnce_forHostPoolsCannotComeTwice() throws Exception {
    driver.importsOnce = true;
    for (int round = 0; round < 20; round++) {
      try (AllocationHandle handle = handle(UUID.randomUUID());
          var threads = Executors.newFixedThreadPool(4)) {
        Callable<PinnedMemoryResource> one =
            () -> PinnedMemoryResource.fromAllocationHandle(cuda, handle);
        Set<PinnedMemoryResource> found = new HashSet<>();
        for (Future<PinnedMemoryResource> each : threads.invokeAll(Collections.nCopies(4, one))) {
          found.add(each.get());
        }
        assertThat(found).hasSize(1);
        found.forEach(PinnedMemoryResource::close);
      }
    }
  }

  @Test
  void resourceRegisteredDuringAnImport_isTheOne_andTheImportIsGivenBack() {
    UUID uuid = UUID.randomUUID();
    try (AllocationHandle raw = handle(null);
        AllocationHandle handle =
            new AllocationHandle(
                new PoolHandle(descriptors, raw.core().duplicateDescriptor(), uuid));
        DeviceMemoryResource resource = DeviceMemoryResource.fromAllocationHandle(device, raw)) {
      driver.during =
          call -> {
            if (!call.equals("destroyed")) {
              resource.register(uuid);
            }
            return call;
          };
      int before = descriptors.open().size();
      assertThat(DeviceMemoryResource.fromAllocationHandle(device, handle)).isSameAs(resource);
      assertThat(driver.poolsOpen).hasValue(1);
      assertThat(descriptors.open()).hasSize(before);
    }
  }

  /** As of two threads, one of which takes the pool for another kind of memory. */
  @Test
  void resourceOfAnotherKindRegisteredDuringAnImport_isAnError_andTheImportIsGivenBack() {
    UUID uuid = UUID.randomUUID();
    try (AllocationHandle raw = handle(null);
        AllocationHandle handle =
            new AllocationHandle(
                new PoolHandle(descriptors, raw.core().duplicateDescriptor(), uuid));
        PinnedMemoryResource pinned = PinnedMemoryResource.fromAllocationHandle(cuda, raw)) {
      driver.during =
          call -> {
            if (!call.equals("destroyed")) {
              assertThat(pinned.register(uuid)).isSameAs(pinned);
            }
            return call;
          };
      int before = descriptors.open().size();
      assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(device, handle))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("expected: a DeviceMemoryResource");
      assertThat(driver.poolsOpen).hasValue(1);
      assertThat(descriptors.open()).hasSize(before);
    }
  }

  @Test
  void resourceThatHasAUuid_isNotFoundUnderThatOfAnotherResourceOfItsPool() {
    UUID first = UUID.randomUUID();
    UUID second = UUID.randomUUID();
    try (AllocationHandle handle = handle(null);
        var one = DeviceMemoryResource.fromAllocationHandle(device, handle);
        var two = DeviceMemoryResource.fromAllocationHandle(device, handle)) {
      assertThat(one.register(first)).isSameAs(one);
      assertThat(two.register(second)).isSameAs(two);
      assertThatThrownBy(() -> one.register(second))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining(first.toString());
    }
  }

  @Test
  void poolOfAnotherDevice_isRefused_andGivenBack() {
    try (AllocationHandle handle = handle(UUID.randomUUID())) {
      assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(cuda.device(1), handle))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("cannot access the pool");
      assertThat(driver.poolsOpen).hasValue(0);
      assertThat(descriptors.open()).hasSize(1);
      DeviceMemoryResource.fromAllocationHandle(device, handle).close();
    }
  }

  @Test
  void systemThatGivesNoMore_isNotTheDescriptorsFault() {
    try (AllocationHandle handle = handle(null)) {
      driver.failing.put("memPoolImportFromShareableHandle", CudaStatus.OPERATING_SYSTEM);
      assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(device, handle))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("OPERATING_SYSTEM")
          .hasMessageNotContaining("no memory pool");
    }
  }

  @Test
  void poolThatIsStillImported_isExplained() {
    driver.importsOnce = true;
    try (AllocationHandle handle = handle(null);
        PinnedMemoryResource _ = PinnedMemoryResource.fromAllocationHandle(cuda, handle)) {
      assertThatThrownBy(() -> PinnedMemoryResource.fromAllocationHandle(cuda, handle))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("ALREADY_MAPPED")
          .hasMessageContaining("not given back yet");
    }
  }

  @Test
  void closedHandle_isRefused_evenIfItsPoolIsRegistered() {
    UUID uuid = UUID.randomUUID();
    AllocationHandle handle = handle(uuid);
    try (DeviceMemoryResource mapped = DeviceMemoryResource.fromAllocationHandle(device, handle)) {
      handle.close();
      assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(device, handle))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
      assertThat(DeviceMemoryResource.fromRegistry(cuda, uuid)).isSameAs(mapped);
    }
  }

  @Test
  void failedPoolImport_leavesNoDescriptor() {
    try (AllocationHandle handle = handle(null)) {
      driver.failing.put("memPoolImportFromShareableHandle", CudaStatus.INVALID_VALUE);
      assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(device, handle))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("no memory pool");
      assertThat(descriptors.open()).hasSize(1);
    }
  }

  @Test
  void allocationHandle_ownsItsDescriptor() {
    UUID uuid = UUID.randomUUID();
    AllocationHandle handle = handle(uuid);
    try (AllocationHandle copy = handle.duplicate()) {
      assertThat(copy.descriptor()).isNotEqualTo(handle.descriptor());
      assertThat(copy.uuid()).contains(uuid);
      handle.close();
      handle.close();
      assertThat(handle.isClosed()).isTrue();
      assertThat(descriptors.open()).containsExactly(copy.descriptor());
    }
    assertThatThrownBy(handle::descriptor).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(handle::duplicate).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(device, handle))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> AllocationHandle.of(-1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("-1");
    assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(device, -5))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("-5");
    assertThatCode(() -> Descriptors.checkOpen(descriptors, 7))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** The number of a closed one may be that of any file by now. */
  @Test
  void closedHandle_isOfNoPool_notEvenOfItsOwn() {
    UUID uuid = UUID.randomUUID();
    try (AllocationHandle one = handle(uuid);
        AllocationHandle two = one.duplicate()) {
      PoolHandle open = one.core();
      PoolHandle closed = two.core();
      assertThat(open.isSamePool(closed)).isTrue();
      closed.close();
      assertThat(open.isSamePool(closed)).isFalse();
      assertThat(closed.isSamePool(open)).isFalse();
      assertThat(closed.isSamePool(closed)).isFalse();
    }
  }

  @Test
  void identityOfAPool_isGivenOnce() {
    UUID uuid = UUID.randomUUID();
    try (AllocationHandle raw = handle(null)) {
      PoolHandle handle = raw.core();
      handle.identify(uuid);
      handle.identify(uuid);
      assertThatThrownBy(() -> handle.identify(new UUID(1, 2)))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("uuid: %s (expected: %s, which the pool has already)", new UUID(1, 2), uuid);
      assertThat(handle.uuid()).contains(uuid);
    }
  }

  /** That of the standard input is one. */
  @Test
  void numberOfADescriptor_isNotNegative() {
    assertThat(Descriptors.checkNumber(0)).isZero();
    assertThatThrownBy(() -> Descriptors.checkNumber(-1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("descriptor: -1 (expected: >= 0)");
  }

  /** What is under way may come to its end. */
  @Test
  void socketThatCloses_isNotOverAtOnce() {
    OpenSocket socket = new OpenSocket(descriptors, descriptors.memoryFile("socket", 0), "socket");
    assertThat(socket.isOver()).isFalse();
    long begun = System.nanoTime();
    socket.close();
    boolean isOver = socket.isOver();
    assertThat(isOver && System.nanoTime() - begun < 300_000_000).isFalse();
    assertThat(Await.until(socket::isOver, 40_000_000_000L)).isTrue();
  }

  /** A UUID counts where the system cannot tell, and there alone. */
  @Test
  void handles_areOfOnePool_asTheSystemSays_andElseByTheirUuid() {
    UUID uuid = UUID.randomUUID();
    for (boolean tells : new boolean[] {true, false}) {
      descriptors.tellsFilesApart = tells;
      for (UUID first : new UUID[] {null, uuid, UUID.randomUUID()}) {
        for (UUID second : new UUID[] {null, uuid}) {
          try (PoolHandle one = PoolHandle.own(descriptors, file(), first);
              PoolHandle same = PoolHandle.own(descriptors, one.duplicateDescriptor(), second);
              PoolHandle other = PoolHandle.own(descriptors, file(), second)) {
            boolean claimed = !tells && first != null && first.equals(second);
            String what = "%s and %s, told: %s".formatted(first, second, tells);
            assertThat(one.isSamePool(same)).as(what).isEqualTo(tells || claimed);
            assertThat(same.isSamePool(one)).as(what).isEqualTo(tells || claimed);
            assertThat(one.isSamePool(other)).as(what).isEqualTo(claimed);
            assertThat(other.isSamePool(one)).as(what).isEqualTo(claimed);
          }
        }
      }
    }
    assertThat(descriptors.open()).isEmpty();
  }

  private int file() {
    return descriptors.memoryFile("pool", 0);
  }
}
