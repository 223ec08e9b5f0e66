package io.cuvette.internal.lifetime;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/**
 * What threads give back that have not its owner's lock. Each is in one such list at most, and
 * links it: giving it takes one compare-and-set and no Java heap. Thread-safe.
 */
public final class ReturnStack {
  private static final VarHandle CELL = MethodHandles.arrayElementVarHandle(Ending[].class);

  /** 128 bytes or more away from anything else, which its owner writes. */
  private static final int TOP = 32;

  static {
    // The first push links what it calls, which needs Java heap: there may be none at a real one.
    new ReturnStack().push(new Nothing());
  }

  private final @Nullable Ending[] cells = new Ending[2 * TOP + 1];

  public boolean isEmpty() {
    return CELL.getVolatile(cells, TOP) == null;
  }

  public void push(Ending one) {
    Ending top;
    do {
      top = (Ending) CELL.getVolatile(cells, TOP);
      one.next = top;
    } while (!CELL.compareAndSet(cells, TOP, top, one));
  }

  /** Takes all out: the last that came, with the others as its {@code next}. */
  public @Nullable Ending takeAll() {
    return isEmpty() ? null : (Ending) CELL.getAndSet(cells, TOP, null);
  }

  private static final class Nothing extends Ending {
    Nothing() {
      super(ReturnStack.class, null, null);
    }

    @Override
    public String describe() {
      return "nothing";
    }

    @Override
    public void release() {}
  }
}
