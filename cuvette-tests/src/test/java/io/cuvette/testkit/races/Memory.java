package io.cuvette.testkit.races;

import io.cuvette.Buffer;
import io.cuvette.MemoryResource;
import java.util.Locale;

/** The kinds of memory whose buffers are ended in ways of their own. */
enum Memory {
  POOLED {
    @Override
    Buffer make(Stage stage) {
      return stage.pool().allocate(Stage.BYTES, stage.device.nullStream());
    }
  },
  DIRECT {
    @Override
    Buffer make(Stage stage) {
      return MemoryResource.direct().allocate(Stage.BYTES, stage.device.nullStream());
    }
  },
  ASYNC {
    @Override
    Buffer make(Stage stage) {
      return stage.asyncPool().allocate(Stage.BYTES, stage.device.nullStream());
    }
  },
  PINNED {
    @Override
    Buffer make(Stage stage) {
      return stage.pinnedPool().allocate(Stage.BYTES);
    }
  },
  MANAGED {
    @Override
    Buffer make(Stage stage) {
      return stage.cuda.allocateManaged(Stage.BYTES);
    }
  };

  abstract Buffer make(Stage stage);

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
