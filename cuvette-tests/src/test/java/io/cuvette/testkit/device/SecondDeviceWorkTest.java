package io.cuvette.testkit.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CaptureOptions;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.Dim3;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.GraphCondition;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphMemory;
import io.cuvette.GraphMemoryResource;
import io.cuvette.GraphNode;
import io.cuvette.GrowableBuffer;
import io.cuvette.GrowableOptions;
import io.cuvette.KernelAttribute;
import io.cuvette.LaunchConfig;
import io.cuvette.LibraryHandle;
import io.cuvette.MatrixProducts;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PoolOptions;
import io.cuvette.Scope;
import io.cuvette.driver.GraphNodeParams.Allocation;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixProduct.Operand;
import io.cuvette.driver.MatrixType;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.FirstDevice;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Kernels, graphs and copies of rows on one device, whichever is the first. */
class SecondDeviceWorkTest {
  private static final int BYTES = 1 << 16;
  private static final LaunchConfig CONFIG = LaunchConfig.of(1, 32);

  @CudaTest(devices = 2, simulatedOnly = true)
  void kernels_areTheBusinessOfTheirDeviceAlone(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(driver);
    CudaDevice device = stream.device();
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer buffer = cuda.allocate(BYTES, stream)) {
      buffer.fill((byte) 0, stream);
      CudaKernel kernel = module.kernel("scale");
      stream.launch(kernel, CONFIG, buffer, 2f, 32);
      assertThat(kernel.attribute(KernelAttribute.MAX_THREADS_PER_BLOCK, device)).isPositive();
      kernel.allowDynamicSharedBytes(device, 1024);
      assertThat(kernel.maxActiveBlocks(device, 32, 0)).isPositive();
      assertThat(kernel.maxPotentialBlockSize(device, 0, 0).blockThreads()).isPositive();
      assertThat(kernel.availableDynamicSharedBytes(device, 1, 32)).isPositive();
      assertThat(kernel.maxResidentBlocks(device, CONFIG)).isPositive();
      assertThat(kernel.maxActiveClusters(device, CONFIG.withCluster(Dim3.of(1)))).isPositive();
      assertThat(kernel.maxPotentialClusterSize(device, CONFIG)).isPositive();
      stream.synchronize();
    }
    assertThat(driver.notes()).isEmpty();
  }

  /** Access that is granted to memory itself needs no access to all of its device. */
  @CudaTest(devices = 2, peers = "all")
  void memoryWithPeers_isForKernelsOfThePeers(
      Cuda cuda, CudaStream first, @OnDevice(1) CudaStream second) {
    for (List<CudaStream> pair : List.of(List.of(first, second), List.of(second, first))) {
      CudaStream near = pair.getFirst();
      CudaStream far = pair.getLast();
      CudaDevice peer = far.device();
      GrowableOptions options = GrowableOptions.ofMaxBytes(BYTES);
      try (CudaModule module = TestKernels.launches(cuda);
          DeviceMemoryResource resource = new DeviceMemoryResource(near.device());
          MemoryPool caching = new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(resource));
          ElasticMemoryPool elastic =
              new ElasticMemoryPool(cuda, ElasticPoolOptions.DEFAULTS.withPeers(peer));
          GrowableBuffer alone = near.device().growable(options);
          GrowableBuffer growable = near.device().growable(options.withPeers(List.of(peer)));
          Buffer ofPool = caching.allocate(BYTES, near);
          Buffer ofPages = elastic.allocate(BYTES, near);
          Buffer adopted = near.device().adopt(ofPool.address(), BYTES, () -> {});
          Buffer wrapped = near.device().wrap(ofPool.address(), BYTES, ofPool)) {
        CudaKernel kernel = module.kernel("scale");
        alone.grow(BYTES);
        growable.grow(BYTES);
        for (Buffer each : List.of(alone, ofPool, adopted, wrapped)) {
          assertThatThrownBy(() -> far.launch(kernel, CONFIG, each, 2f, 32))
              .hasMessageContaining("expected: memory that %s".formatted(peer));
        }
        boolean _ = resource.peerAccessibleBy().add(peer);
        for (Buffer each : List.of(growable, ofPool, ofPages, adopted, wrapped)) {
          each.fill((byte) 0, near);
          near.synchronize();
          far.launch(kernel, CONFIG, each, 2f, 32);
          far.synchronize();
        }
      }
    }
  }

  /** Plain memory has no access of its own: all of its device is for a peer, or nothing. */
  @CudaTest(devices = 2, peers = "all")
  void plainMemory_isForKernelsOfADeviceThatHasPeerAccess(
      Cuda cuda, CudaStream near, @OnDevice(1) CudaStream far) {
    CudaDevice peer = far.device();
    try (CudaModule module = TestKernels.launches(cuda);
        MemoryPool caching = new MemoryPool(cuda);
        Buffer cached = caching.allocate(BYTES, near);
        Buffer plain = MemoryResource.direct().allocate(BYTES, near);
        Buffer adopted = near.device().adopt(plain.address(), BYTES, () -> {});
        Buffer wrapped = near.device().wrap(plain.address(), BYTES, plain)) {
      CudaKernel kernel = module.kernel("scale");
      List<Buffer> all = List.of(cached, cached.slice(256, 256), plain, adopted, wrapped);
      for (Buffer each : all) {
        assertThatThrownBy(() -> far.launch(kernel, CONFIG, each, 2f, 32))
            .hasMessageContaining("expected: memory of %s", peer)
            .hasMessageContaining("or CudaDevice.enablePeerAccess first");
      }
      peer.enablePeerAccess(near.device());
      for (Buffer each : all) {
        each.fill((byte) 0, near);
        near.synchronize();
        far.launch(kernel, CONFIG, each, 2f, 32);
        far.synchronize();
      }
      peer.disablePeerAccess(near.device());
    }
  }

  /** Peer access to a device does not reach what is mapped there, whoever mapped it. */
  @CudaTest(devices = 2, peers = "all")
  void wrappedPages_areForKernelsOfTheDevicesThatTheyAreMappedFor(
      Cuda cuda, CudaStream first, @OnDevice(1) CudaStream second) {
    for (List<CudaStream> pair : List.of(List.of(first, second), List.of(second, first))) {
      CudaDevice near = pair.getFirst().device();
      CudaStream far = pair.getLast();
      CudaDevice peer = far.device();
      GrowableOptions options = GrowableOptions.ofMaxBytes(BYTES);
      try (CudaModule module = TestKernels.launches(cuda);
          GrowableBuffer alone = near.growable(options);
          GrowableBuffer growable = near.growable(options.withPeers(List.of(peer)))) {
        CudaKernel kernel = module.kernel("scale");
        alone.grow(BYTES);
        growable.grow(BYTES);
        growable.fill((byte) 0, pair.getFirst());
        pair.getFirst().synchronize();
        try (Buffer wrapped = near.wrap(growable.address(), BYTES, growable);
            Buffer adopted = near.adopt(growable.address(), BYTES, () -> {})) {
          for (Buffer each : List.of(wrapped, adopted, adopted.slice(256, 256))) {
            far.launch(kernel, CONFIG, each, 2f, 32);
            far.synchronize();
          }
        }
        peer.enablePeerAccess(near);
        try (Buffer wrapped = near.wrap(alone.address(), BYTES, alone);
            Buffer adopted = near.adopt(alone.address(), BYTES, () -> {})) {
          for (Buffer each : List.of(wrapped, adopted, adopted.slice(256, 256))) {
            assertThatThrownBy(() -> far.launch(kernel, CONFIG, each, 2f, 32))
                .hasMessageContaining("expected: memory that %s".formatted(peer));
          }
        }
        peer.disablePeerAccess(near);
      }
    }
  }

  /** What a node allocates is for its own device: it grants others nothing. */
  @CudaTest(devices = 2, peers = "all")
  void memoryOfANode_isForKernelsOfItsDeviceAlone_alsoWithPeerAccess(
      Cuda cuda, CudaStream near, @OnDevice(1) CudaStream far) {
    CudaDevice peer = far.device();
    peer.enablePeerAccess(near.device());
    try (CudaModule module = TestKernels.launches(cuda);
        GraphDefinition definition = new GraphDefinition(near.device())) {
      GraphNode allocation = definition.root().allocate(BYTES);
      Buffer memory = allocation.buffer(near);
      GraphNode fill = definition.after(allocation).fill(memory, (byte) 0);
      GraphNode launch =
          definition.after(fill).launch(module.kernel("scale"), CONFIG, memory, 2f, 32);
      GraphNode _ = definition.after(launch).free(allocation);
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        executable.launch(near);
        near.synchronize();
        assertThatThrownBy(
                () -> far.launch(module.kernel("scale"), CONFIG, memory.slice(256, 256), 2f, 32))
            .hasMessageContaining("expected: memory that %s", peer);
      }
    }
    peer.disablePeerAccess(near.device());
  }

  /** Only graphs of others have such nodes. */
  @CudaTest(devices = 2, peers = "all", simulatedOnly = true)
  void memoryOfANodeThatNamesAPeer_isForKernelsOfThatPeer(
      Cuda cuda, ScriptedDriver driver, CudaStream near, @OnDevice(1) CudaStream far) {
    CudaDevice peer = far.device();
    peer.enablePeerAccess(near.device());
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer plain = MemoryResource.direct().allocate(BYTES, near);
        GraphDefinition definition = new GraphDefinition(near.device())) {
      plain.fill((byte) 0, near);
      near.synchronize();
      GraphNode node = definition.root().allocate(BYTES);
      List<Integer> peers = List.of(peer.id());
      driver.answer("graphNodeGetParams", _ -> new Allocation(0, BYTES, peers, plain.address()));
      far.launch(module.kernel("scale"), CONFIG, node.buffer(near), 2f, 32);
      far.synchronize();
    }
    peer.disablePeerAccess(near.device());
  }

  @CudaTest(devices = 2)
  void emptyMemory_isForKernelsOfEachDevice(
      Cuda cuda, CudaStream first, @OnDevice(1) CudaStream second) {
    try (CudaModule module = TestKernels.launches(cuda);
        Buffer empty = cuda.allocate(0, first);
        Buffer wrapped = first.device().wrap(0, 0, null)) {
      for (Buffer each : List.of(empty, wrapped)) {
        second.launch(module.kernel("scale"), CONFIG, each, 2f, 0);
        second.synchronize();
      }
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void productsOfMatrices_areTheBusinessOfTheirDeviceAlone(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(driver);
    Operand packed = new Operand(false, 2, 4);
    MatrixProduct product = new MatrixProduct(MatrixType.FLOAT, 2, 2, 2, packed, packed, packed, 1);
    try (LibraryHandle handle = stream.device().useCublas(stream);
        Buffer all = cuda.allocate(48, stream)) {
      all.fill((byte) 0, stream);
      MatrixProducts.multiply(
          handle, product, all.slice(0, 16), all.slice(16, 16), all.slice(32, 16));
      stream.synchronize();
    }
    assertThat(driver.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void capturedGraphs_areTheBusinessOfTheirDeviceAlone(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(driver);
    CudaDevice device = stream.device();
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    try (Buffer out = cuda.allocate(BYTES, stream);
        CudaStream second = device.createStream();
        GraphMemory memory = device.createGraphMemory(BYTES);
        CudaGraph graph =
            stream.capture(
                CaptureOptions.DEFAULTS.withMemory(memory),
                () -> {
                  try (Buffer step = cuda.allocate(BYTES, stream)) {
                    step.fill((byte) 1, stream);
                    second.waitFor(stream);
                    out.copyFrom(step, second);
                    stream.waitFor(second);
                  }
                });
        CudaGraph copy = graph.copy();
        CudaGraph outer =
            stream.capture(
                CaptureOptions.DEFAULTS.withMemory(memory),
                () -> {
                  stream.captureChild(graph);
                  stream.captureCallback(() -> {});
                  out.copyTo(host, stream);
                });
        CudaGraphExec executable = copy.instantiate()) {
      assertThat(outer.isClosed()).isFalse();
      executable.upload(stream);
      executable.launch(stream);
      executable.update(graph);
      executable.launch(stream);
      stream.synchronize();
    }
    assertThat(driver.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void memoryOfGraphs_isTheBusinessOfItsDeviceAlone(
      ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(driver);
    GraphMemoryResource resource = new GraphMemoryResource(stream.device());
    try (CudaGraph graph =
            stream.capture(() -> {
              try (Buffer step = resource.allocate(BYTES, stream)) {
                step.fill((byte) 1, stream);
              }
            });
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      stream.synchronize();
    }
    resource.trim();
    assertThat(resource.usedMemHigh()).isPositive();
    resource.resetUsedMemHigh();
    assertThat(driver.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void definedGraphs_areTheBusinessOfTheirDeviceAlone(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(driver);
    CudaDevice device = stream.device();
    try (Buffer from = cuda.allocate(BYTES, stream);
        Buffer to = cuda.allocate(BYTES, stream);
        CudaEvent event = device.createEvent();
        CudaModule module = TestKernels.launches(cuda);
        GraphDefinition definition = new GraphDefinition(device)) {
      GraphNode fill = definition.root().fill(from, (byte) 1);
      GraphNode copy = definition.after(fill).copy(to, from);
      GraphNode launch = definition.after(copy).launch(module.kernel("scale"), CONFIG, to, 2f, 32);
      GraphNode record = definition.after(launch).record(event);
      GraphNode allocation = definition.after(record).allocate(BYTES);
      GraphNode inside = definition.after(allocation).fill(allocation.buffer(stream), (byte) 2);
      GraphNode free = definition.after(inside).free(allocation);
      GraphCondition condition = definition.createCondition(1);
      GraphNode branch = definition.after(free).ifThen(condition);
      GraphNode body = branch.bodies().getFirst().root().fill(to, (byte) 3);
      GraphNode last = definition.after(branch).callback(() -> {});
      assertThat(last.type()).isEqualTo(GraphNodeType.HOST);
      assertThat(copy.parameters()).isNotNull();
      assertThat(body.definition().isBody()).isTrue();
      launch.setPriority(launch.priority());
      try (CudaGraphExec executable = definition.graph().instantiate()) {
        executable.launch(stream);
        copy.update().copy(to, from);
        copy.updateIn(executable).copy(from, to);
        fill.updateIn(executable).fill(to, (byte) 4);
        fill.setEnabledIn(executable, false);
        assertThat(fill.isEnabledIn(executable)).isFalse();
        executable.launch(stream);
        stream.synchronize();
      }
      assertThat(definition.graph().toDot(true)).startsWith("digraph");
    }
    assertThat(driver.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void copiesOfRowsAndBoxes_areTheBusinessOfTheirDeviceAlone(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(driver);
    CopyBox box = CopyBox.of(100, 20).withSource(0, 200).withTarget(50, 300);
    try (Scope _ = stream.use();
        Arena arena = Arena.ofShared();
        Buffer from = cuda.allocate(BYTES, stream);
        Buffer to = cuda.allocate(BYTES, stream);
        PinnedBuffer pinned = cuda.allocatePinned(BYTES)) {
      from.fill((byte) 1, stream);
      to.fill((byte) 1, stream);
      pinned.fill((byte) 1, stream);
      CopyBatch.of(
              List.of(to.slice(0, 64), to.slice(256, 64)),
              List.of(from.slice(0, 64), from.slice(256, 64)))
          .copy(stream);
      to.gatherFrom(List.of(pinned.segment().asSlice(0, 100)), stream);
      to.copyFrom(from, box, stream);
      to.copyFrom(pinned, box, stream);
      pinned.copyFrom(from, box, stream);
      to.copyFromAsync(from, box, stream).join();
      for (MemorySegment host :
          List.of(MemorySegment.ofArray(new byte[BYTES]), arena.allocate(BYTES))) {
        to.copyFrom(host, box);
        to.copyTo(host, box);
        to.gatherFrom(List.of(host.asSlice(0, 100), host.asSlice(200, 300)));
        to.scatterTo(List.of(host.asSlice(0, 100), host.asSlice(200, 300)));
        if (host.isNative()) {
          to.copyFromAsync(host, box, stream).join();
          to.copyToAsync(host, box, stream).join();
          to.gatherFromAsync(List.of(host.asSlice(0, 100)), stream).join();
          to.scatterToAsync(List.of(host.asSlice(0, 100)), stream).join();
        }
      }
      stream.synchronize();
    }
    assertThat(driver.notes()).isEmpty();
  }

  /** Memory of the host is for kernels of each device, memory of a device for those with access. */
  @CudaTest(devices = 2, peers = "all")
  void kernelsOfNodes_reachWhatThoseOfStreamsReach(
      Cuda cuda, CudaStream first, @OnDevice(1) CudaStream second) {
    try (CudaModule module = TestKernels.launches(cuda);
        PinnedBuffer pooled = cuda.allocatePinned(BYTES);
        PinnedBuffer direct = cuda.directPinned().allocate(BYTES);
        PinnedBuffer registered = cuda.registerHost(Arena.ofAuto().allocate(BYTES, 4096));
        Buffer managed = cuda.allocateManaged(BYTES)) {
      CudaKernel kernel = module.kernel("scale");
      for (List<CudaStream> pair : List.of(List.of(first, second), List.of(second, first))) {
        CudaStream near = pair.getFirst();
        CudaDevice far = pair.getLast().device();
        try (Buffer plain = MemoryResource.direct().allocate(BYTES, near);
            GraphDefinition definition = new GraphDefinition(far)) {
          plain.fill((byte) 0, near);
          near.synchronize();
          assertThatThrownBy(() -> definition.root().launch(kernel, CONFIG, plain, 2f, 32))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("or CudaDevice.enablePeerAccess first");
          assertThat(definition.nodes()).isEmpty();
          for (Buffer each : List.of(pooled, direct, registered, managed)) {
            pair.getLast().launch(kernel, CONFIG, each, 2f, 32);
            GraphNode _ = definition.root().launch(kernel, CONFIG, each, 2f, 32);
          }
          far.enablePeerAccess(near.device());
          GraphNode _ = definition.root().launch(kernel, CONFIG, plain, 2f, 32);
          try (CudaGraphExec executable = definition.graph().instantiate()) {
            executable.launch(pair.getLast());
            pair.getLast().synchronize();
          }
          far.disablePeerAccess(near.device());
        }
      }
    }
  }
}
