package io.cuvette.testkit.ipc;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DriverPoolResource;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.EventDescriptor;
import io.cuvette.EventOptions;
import io.cuvette.MemoryResource;
import io.cuvette.PageHandles;
import io.cuvette.PinnedBuffer;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.HeldBySystem;
import io.cuvette.testkit.support.Peer;
import io.cuvette.testkit.support.PeerProgram;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/**
 * The other process of a test: it makes, shares and uses named things one by one as {@link
 * RemoteSharer} asks. Each line is a verb, the name of what it is about, and more words; each
 * answer says {@code ok} and a result, or {@code refused} and why.
 */
public final class Sharer implements PeerProgram {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final Map<String, AutoCloseable> things = new LinkedHashMap<>();

  @Override
  public void run(Peer peer) throws Exception {
    for (String line = peer.hear(); !line.equals("end"); line = peer.hear()) {
      try {
        peer.say("ok " + answer(peer, line.split(" ")));
      } catch (Exception e) { // what is refused is for the test to judge
        e.printStackTrace();
        peer.say("refused " + e);
      }
    }
  }

  private Object answer(Peer peer, String[] words) throws Exception {
    String name = words.length > 1 ? words[1] : "";
    String[] rest = Arrays.copyOfRange(words, Math.min(2, words.length), words.length);
    Cuda cuda = peer.cuda();
    return switch (words[0]) {
      case "pool" -> put(name, SharedPool.valueOf(rest[0]).create(cuda));
      case "sendPool" -> {
        peer.channel().send(pool(name).allocationHandle());
        yield "";
      }
      case "receivePool" -> {
        try (AllocationHandle handle = peer.channel().receiveAllocationHandle(PATIENCE)) {
          yield put(name, SharedPool.valueOf(rest[0]).importFrom(cuda, handle));
        }
      }
      case "receivePoolOf" -> {
        CudaDevice device = cuda.device(Integer.parseInt(rest[0]));
        try (AllocationHandle handle = peer.channel().receiveAllocationHandle(PATIENCE)) {
          yield put(name, DeviceMemoryResource.fromAllocationHandle(device, handle));
        }
      }
      case "elastic" -> put(name, new ElasticMemoryPool(cuda, ElasticSharingTest.EXPORTABLE));
      case "allocateElastic" ->
          put(name, thing(rest[0], ElasticMemoryPool.class).allocate(Long.parseLong(rest[1])));
      case "sendPages" -> {
        Buffer exported = thing(rest[0], Buffer.class);
        try (PageHandles handles = thing(name, ElasticMemoryPool.class).export(exported)) {
          peer.channel().send(handles);
        }
        yield "";
      }
      case "receivePages" -> {
        try (PageHandles handles = peer.channel().receivePageHandles(PATIENCE)) {
          yield put(name, device(cuda).importBuffer(handles, cuda.currentStream()));
        }
      }
      case "deviceOf" -> thing(name, Buffer.class).device().id();
      case "poolFacts" -> facts(pool(name));
      case "find" ->
          put(name, SharedPool.valueOf(rest[0]).fromRegistry(cuda, UUID.fromString(rest[1])));
      case "same" -> things.get(name) == things.get(rest[0]);
      case "peers" -> ((DeviceMemoryResource) pool(name)).peerAccessibleBy().toString();
      case "allowPeer" ->
          ((DeviceMemoryResource) pool(name))
              .peerAccessibleBy()
              .add(cuda.device(Integer.parseInt(rest[0])));
      case "free" -> device(cuda).memoryInfo().freeBytes();
      case "descriptors" -> HeldBySystem.descriptors();
      case "kinds" -> HeldBySystem.kinds();
      case "mappings" -> HeldBySystem.mappings().size();
      default -> answer(cuda, words[0], name, rest);
    };
  }

  private Object answer(Cuda cuda, String verb, String name, String[] rest) throws Exception {
    return switch (verb) {
      case "allocate" -> put(name, pool(rest[0]).allocate(Long.parseLong(rest[1])));
      case "allocatePlain" ->
          put(
              name,
              MemoryResource.direct().allocate(Long.parseLong(rest[0]), cuda.currentStream()));
      case "import" -> put(name, SharedPool.importBuffer(pool(rest[0]), buffer(rest[1])));
      case "importOn" ->
          put(name, SharedPool.importBuffer(pool(rest[0]), buffer(rest[1]), stream(rest[2])));
      case "importPlain" -> put(name, device(cuda).importBuffer(buffer(rest[0])));
      case "slice" ->
          put(
              name,
              thing(rest[0], Buffer.class).slice(Long.parseLong(rest[1]), Long.parseLong(rest[2])));
      case "descriptor" ->
          HexFormat.of().formatHex(thing(name, Buffer.class).descriptor().toBytes());
      case "isMapped" -> thing(name, Buffer.class).isMapped();
      case "put" -> putPattern(thing(name, Buffer.class), Long.parseLong(rest[0]));
      case "holds" -> holdsPattern(thing(name, Buffer.class), Long.parseLong(rest[0]));
      case "hostByte" ->
          thing(name, PinnedBuffer.class)
              .segment()
              .get(ValueLayout.JAVA_BYTE, Long.parseLong(rest[0]));
      case "lastByte" -> {
        Buffer buffer = thing(name, Buffer.class);
        yield Bytes.of(buffer.slice(buffer.byteSize() - 1))[0];
      }
      case "close" -> close(name);
      case "synchronize" -> {
        cuda.devices().forEach(CudaDevice::synchronize);
        yield "";
      }
      default -> answerInOrder(cuda, verb, name, rest);
    };
  }

  private Object answerInOrder(Cuda cuda, String verb, String name, String[] rest) {
    switch (verb) {
      case "stream" -> put(name, device(cuda).createStream());
      case "gate" -> put(name, Gate.on(stream(rest[0])));
      case "event" ->
          put(
              name,
              device(cuda)
                  .createEvent(
                      EventOptions.ORDER_ONLY
                          .withInterprocess(true)
                          .withBlockingSync(rest.length > 0)));
      case "importEvent" ->
          put(
              name,
              device(cuda)
                  .importEvent(EventDescriptor.fromBytes(HexFormat.of().parseHex(rest[0]))));
      case "fillOn" -> thing(name, Buffer.class).fill(Byte.parseByte(rest[0]), stream(rest[1]));
      case "record" -> thing(name, CudaEvent.class).record(stream(rest[0]));
      case "waitFor" -> stream(name).waitFor(thing(rest[0], CudaEvent.class));
      case "await" -> thing(name, CudaEvent.class).synchronize();
      case "finish" -> stream(name).synchronize();
      default -> {
        return ask(verb, name, rest);
      }
    }
    return "";
  }

  private Object ask(String verb, String name, String[] rest) {
    return switch (verb) {
      case "isDone" ->
          things.get(name) instanceof CudaEvent event ? event.isDone() : stream(name).isDone();
      case "options" -> thing(name, CudaEvent.class).options();
      case "eventDescriptor" ->
          HexFormat.of().formatHex(thing(name, CudaEvent.class).descriptor().toBytes());
      case "elapsed" ->
          CudaEvent.elapsedMillis(thing(name, CudaEvent.class), thing(rest[0], CudaEvent.class));
      default -> throw new AssertionError("verb: " + verb);
    };
  }

  private static String facts(DriverPoolResource pool) {
    return "mapped=%b ipc=%b owned=%b uuid=%s"
        .formatted(
            pool.isMapped(),
            pool.isIpcEnabled(),
            pool.isHandleOwned(),
            pool.uuid().map(UUID::toString).orElse("none"));
  }

  private static Object putPattern(Buffer buffer, long seed) {
    Bytes.put(buffer, Bytes.random(seed, Math.toIntExact(buffer.byteSize())));
    return "";
  }

  private static boolean holdsPattern(Buffer buffer, long seed) {
    return Arrays.equals(Bytes.of(buffer), Bytes.random(seed, Math.toIntExact(buffer.byteSize())));
  }

  private Object close(String name) throws Exception {
    things.remove(name).close();
    return "";
  }

  private String put(String name, AutoCloseable thing) {
    things.put(name, thing);
    return "";
  }

  private <T> T thing(String name, Class<T> type) {
    return type.cast(things.get(name));
  }

  private DriverPoolResource pool(String name) {
    return thing(name, DriverPoolResource.class);
  }

  private CudaStream stream(String name) {
    return thing(name, CudaStream.class);
  }

  private static BufferDescriptor buffer(String hex) {
    return BufferDescriptor.fromBytes(HexFormat.of().parseHex(hex));
  }

  private static CudaDevice device(Cuda cuda) {
    return cuda.device(0);
  }
}
