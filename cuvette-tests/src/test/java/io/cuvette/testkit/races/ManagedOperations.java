package io.cuvette.testkit.races;

import io.cuvette.CudaStream;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryAdvice;
import io.cuvette.MemoryLocation;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/** Operations of {@code ManagedBuffer}. Stateless. */
final class ManagedOperations {
  private static final MemoryLocation HOST = MemoryLocation.host();

  private ManagedOperations() {}

  static List<Operation> all() {
    return List.of(
        of("segment()", buffer -> buffer.segment().fill((byte) 1)),
        of("byteBuffer()", buffer -> buffer.byteBuffer().put(0, (byte) 1)),
        of("slice(long)", buffer -> buffer.slice(8)),
        of("slice(long, long)", buffer -> buffer.slice(0, 8)),
        of("prefetch(MemoryLocation)", buffer -> buffer.prefetch(HOST)),
        Operation.of(
            "ManagedBuffer.prefetch(MemoryLocation, CudaStream)",
            stage -> {
              ManagedBuffer buffer = stage.managed();
              CudaStream stream = stage.stream();
              return () -> buffer.prefetch(HOST, stream);
            }),
        of("lastPrefetchLocation()", ManagedBuffer::lastPrefetchLocation),
        of(
            "advise(MemoryAdvice, MemoryLocation)",
            buffer -> buffer.advise(MemoryAdvice.SET_READ_MOSTLY, HOST)),
        of("isReadMostly()", ManagedBuffer::isReadMostly),
        of("setReadMostly(boolean)", buffer -> buffer.setReadMostly(true)),
        of("preferredLocation()", ManagedBuffer::preferredLocation),
        of("setPreferredLocation(MemoryLocation)", buffer -> buffer.setPreferredLocation(HOST)),
        of("clearPreferredLocation()", ManagedBuffer::clearPreferredLocation),
        of("accessedBy()", buffer -> buffer.accessedBy().contains(HOST)),
        of("setAccessedBy(Collection)", buffer -> buffer.setAccessedBy(Set.of(HOST))));
  }

  private static Operation of(String method, Consumer<ManagedBuffer> body) {
    return Operation.of(
        "ManagedBuffer." + method,
        stage -> {
          ManagedBuffer buffer = stage.managed();
          return () -> body.accept(buffer);
        });
  }
}
