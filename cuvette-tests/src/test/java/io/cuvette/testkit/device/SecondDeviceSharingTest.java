package io.cuvette.testkit.device;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.EventOptions;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryResource;
import io.cuvette.PageHandles;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.DriverCall;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.FirstDevice;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** What two processes share is imported for one device, whichever is the first. */
@EnabledOnOs(OS.LINUX)
class SecondDeviceSharingTest {
  private static final DeviceMemoryResourceOptions SHARED =
      DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);

  private final ScriptedDriver script = new ScriptedDriver();

  /** The other process: simulated drivers know as little of each other. */
  private Cuda importer(Subject subject) {
    Cuda importer = subject.open(options -> options.withDecorator(script::over));
    FirstDevice.watch(script);
    for (String name : List.of("deviceGetUuid", "deviceTotalMem", "memPoolGetAccess")) {
      script.note(name, _ -> null); // asked about all devices
    }
    script.note("memPoolSetAccess", DriverCall::name); // that of its own device is for ever
    return importer;
  }

  private static DeviceMemoryResource mapped(CudaDevice device, DeviceMemoryResource resource) {
    return DeviceMemoryResource.fromAllocationHandle(device, resource.allocationHandle());
  }

  private void useAndClose(DeviceBuffer imported, CudaStream stream) {
    imported.fill((byte) 1, stream);
    stream.synchronize();
    imported.close();
    assertThat(script.takeNotes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void importsOfEachKind_areTheBusinessOfTheirDeviceAlone(
      Subject subject, @OnDevice(1) CudaStream ours) {
    CudaDevice device = importer(subject).device(1);
    EventOptions interprocess = EventOptions.ORDER_ONLY.withInterprocess(true);
    try (CudaStream theirs = device.createStream();
        DeviceMemoryResource resource = new DeviceMemoryResource(ours.device(), SHARED);
        Buffer ofPool = resource.allocate(MIB, ours);
        Buffer plain = MemoryResource.direct().allocate(MIB, ours);
        CudaEvent event = ours.device().createEvent(interprocess)) {
      ours.synchronize();
      try (DeviceMemoryResource mapped = mapped(device, resource)) {
        useAndClose(mapped.importBuffer(ofPool.descriptor(), theirs), theirs);
      }
      useAndClose(device.importBuffer(plain.descriptor(), theirs), theirs);
      try (CudaEvent imported = device.importEvent(event.descriptor())) {
        imported.record(theirs);
        theirs.waitFor(imported);
        imported.synchronize();
      }
    }
    assertThat(script.notes()).isEmpty();
  }

  @CudaTest(devices = 2, peers = "all")
  void pages_areMappedForEachDeviceThatCanAccessThem(Subject subject, Cuda cuda) {
    Cuda importer = importer(subject);
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withExportable(true);
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, options)) {
      for (CudaDevice owner : cuda.devices()) {
        try (Buffer ours = pool.allocate(MIB, owner.nullStream());
            PageHandles handles = pool.export(ours);
            CudaStream theirs = importer.device(1).createStream();
            DeviceBuffer second = importer.device(1).importBuffer(handles, theirs)) {
          second.fill((byte) 1, theirs);
          theirs.synchronize();
          CudaStream near = importer.device(0).nullStream();
          try (DeviceBuffer first = importer.device(0).importBuffer(handles, near)) {
            assertThat(first.address()).isNotEqualTo(second.address());
          }
        }
      }
    }
  }

  @CudaTest(devices = 2, peers = "none", simulatedOnly = true)
  void pagesOfADeviceThatTheImporterCannotAccess_areRefused(Subject subject, Cuda cuda) {
    Cuda importer = importer(subject);
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withExportable(true);
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, options);
        Buffer ours = pool.allocate(MIB, cuda.device(0).nullStream());
        PageHandles handles = pool.export(ours)) {
      CudaStream theirs = importer.device(1).nullStream();
      assertThatThrownBy(() -> importer.device(1).importBuffer(handles, theirs))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("or of a device that it can access");
      importer.device(0).importBuffer(handles, importer.device(0).nullStream()).close();
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void importThatFindsNoJavaHeap_isTakenBackOnItsDevice(
      Subject subject, @OnDevice(1) CudaStream ours) {
    CudaDevice device = importer(subject).device(1);
    try (DeviceMemoryResource resource = new DeviceMemoryResource(ours.device(), SHARED);
        Buffer buffer = resource.allocate(MIB, ours);
        DeviceMemoryResource mapped = mapped(device, resource)) {
      script.answer(
          "pointerGetAttribute",
          _ -> {
            throw new OutOfMemoryError("the test's");
          });
      assertThatThrownBy(() -> mapped.importBuffer(buffer.descriptor(), device.nullStream()))
          .isInstanceOf(OutOfMemoryError.class);
      assertThat(script.count("memFree")).isOne();
    }
    assertThat(script.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void importThatNoStreamCanFree_isFreedOnItsDeviceAtTheEnd(
      Subject subject, @OnDevice(1) CudaStream ours) {
    Cuda importer = importer(subject);
    try (DeviceMemoryResource resource = new DeviceMemoryResource(ours.device(), SHARED);
        Buffer buffer = resource.allocate(MIB, ours)) {
      DeviceMemoryResource mapped = mapped(importer.device(1), resource);
      DeviceBuffer left = mapped.importBuffer(buffer.descriptor(), importer.device(1).nullStream());
      script.fail("memFreeAsync", CudaStatus.NOT_PERMITTED);
      script.note("memFree", call -> call.number("device") + " " + call.number("address"));
      assertThatThrownBy(importer::close).isInstanceOf(CudaException.class);
      assertThat(script.notes()).contains("1 " + left.address());
    }
  }

  @CudaTest(devices = 2, peers = "all")
  void importOfAPool_isForKernelsOfTheDevicesThatThePoolGrantsAccess(
      Subject subject, @OnDevice(1) CudaStream ours) {
    Cuda importer = importer(subject);
    CudaStream near = importer.device(1).nullStream();
    CudaStream far = importer.device(0).nullStream();
    LaunchConfig config = LaunchConfig.of(1, 32);
    try (DeviceMemoryResource resource = new DeviceMemoryResource(ours.device(), SHARED);
        Buffer buffer = resource.allocate(MIB, ours);
        DeviceMemoryResource mapped = mapped(near.device(), resource);
        CudaModule module = TestKernels.launches(importer);
        DeviceBuffer imported = mapped.importBuffer(buffer.descriptor(), near)) {
      CudaKernel kernel = module.kernel("scale");
      assertThatThrownBy(() -> far.launch(kernel, config, imported, 2f, 32))
          .hasMessageContaining("expected: memory that %s".formatted(far.device()));
      boolean _ = mapped.peerAccessibleBy().add(far.device());
      imported.fill((byte) 0, near);
      near.synchronize();
      far.launch(kernel, config, imported, 2f, 32);
      far.synchronize();
    }
  }

  @CudaTest(devices = 2, peers = "all", simulatedOnly = true)
  void importOfPlainMemory_isForKernelsOfADeviceThatHasPeerAccess(
      Subject subject, @OnDevice(1) CudaStream ours) {
    Cuda importer = importer(subject);
    CudaStream near = importer.device(1).nullStream();
    CudaStream far = importer.device(0).nullStream();
    LaunchConfig config = LaunchConfig.of(1, 32);
    try (Buffer plain = MemoryResource.direct().allocate(MIB, ours);
        CudaModule module = TestKernels.launches(importer);
        DeviceBuffer imported = near.device().importBuffer(plain.descriptor(), near)) {
      CudaKernel kernel = module.kernel("scale");
      assertThatThrownBy(() -> far.launch(kernel, config, imported, 2f, 32))
          .hasMessageContaining("or CudaDevice.enablePeerAccess first");
      far.device().enablePeerAccess(near.device());
      imported.fill((byte) 0, near);
      near.synchronize();
      far.launch(kernel, config, imported, 2f, 32);
      far.synchronize();
      far.device().disablePeerAccess(near.device());
    }
  }

  /** They are mapped for the device that they were imported for, and copied by that. */
  @CudaTest(devices = 2, peers = "all", simulatedOnly = true)
  void pagesThatWereImported_areForTheirDeviceAlone(Subject subject, Cuda cuda) {
    Cuda importer = importer(subject);
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withExportable(true);
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, options);
        Buffer ours = pool.allocate(MIB, cuda.device(1).nullStream());
        PageHandles handles = pool.export(ours);
        PinnedBuffer out = importer.allocatePinned(MIB);
        CudaModule module = TestKernels.launches(importer);
        CudaStream theirs = importer.device(1).createStream();
        CudaStream far = importer.device(0).createStream();
        DeviceBuffer imported = importer.device(1).importBuffer(handles, theirs)) {
      CudaKernel scale = module.kernel("scale");
      LaunchConfig config = LaunchConfig.of(1, 32);
      imported.fill((byte) 0, theirs);
      theirs.launch(scale, config, imported, 2f, 32);
      theirs.synchronize();
      importer.device(0).enablePeerAccess(importer.device(1));
      assertThatThrownBy(() -> far.launch(scale, config, imported, 2f, 32))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("expected: memory that %s", importer.device(0));
      out.segment().fill((byte) 7);
      imported.copyFrom(out, far);
      far.synchronize();
      out.segment().fill((byte) 8);
      out.copyFrom(imported, far);
      far.synchronize();
      assertThat(out.segment().asSlice(0, MIB).toArray(ValueLayout.JAVA_BYTE)).containsOnly(7);
    }
  }
}
