package io.cuvette.internal.space;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Each step of a space beside a plain model, which knows of every unit what it is. */
class SpaceModelTest {
  private static final int PAGE = 16;
  private static final int PAGES = 28;
  private static final int UNITS = PAGE * PAGES;
  private static final int TAGS = 6;
  private static final int USED = -3;
  private static final long BASE = 1L << 40;
  private static final long SEED = Long.getLong("cuvette.seed", 1);
  private static final int SEEDS = 4;
  private static final int STEPS = 3000;

  private static long bytes(long units) {
    return units << Space.UNIT_SHIFT;
  }

  private static int up(int units) {
    return (units + PAGE - 1) / PAGE * PAGE;
  }

  @Test
  void anyProgram_findsPlacesAndLeavesWhatAPlainModelSays() {
    for (long seed = SEED; seed < SEED + SEEDS; seed++) {
      Program program = new Program(new SplittableRandom(seed));
      for (int step = 0; step < STEPS; step++) {
        try {
          program.step();
          if (step % 4 == 0) {
            program.check();
          }
        } catch (AssertionError | RuntimeException e) {
          throw new AssertionError("seed %d, step %d".formatted(seed, step), e);
        }
      }
    }
  }

  /** What the units are, and up to which of its frees a tag's must be done. */
  private static final class Model {
    final int[] states = new int[UNITS];
    final long[] sequences = new long[UNITS];

    Model() {
      Arrays.fill(states, Space.HOLE);
    }

    void set(int from, int to, int state) {
      Arrays.fill(states, from, to, state);
      Arrays.fill(sequences, from, to, 0);
    }

    /** Where what is equal ends. */
    int end(int from) {
      int to = from + 1;
      while (to < UNITS && states[to] == states[from]) {
        to++;
      }
      return to;
    }

    private boolean joins(int at, int tag) {
      return at >= 0 && at < UNITS && (states[at] == tag || states[at] == Space.DONE);
    }

    void free(int begin, int end, int tag, long sequence) {
      int from = begin;
      int to = end;
      long last = sequence;
      for (; joins(from - 1, tag); from--) {
        last = Math.max(last, sequences[from - 1]);
      }
      for (; joins(to, tag); to++) {
        last = Math.max(last, sequences[to]);
      }
      set(from, to, tag);
      Arrays.fill(sequences, from, to, last);
    }

    void done(int tag, long until) {
      for (int at = 0; at < UNITS; at++) {
        int end = end(at);
        if (states[at] == tag && sequences[at] <= until) {
          free(at, end, Space.DONE, 0);
        }
        at = end - 1;
      }
    }

    long count(int state) {
      return Arrays.stream(states).filter(each -> each == state).count();
    }

    /** The size of the smallest free run of a tag that has so many units; UNITS + 1 if none. */
    int smallest(int units, int tag) {
      int best = UNITS + 1;
      for (int at = 0, end; at < UNITS; at = end) {
        end = end(at);
        best = states[at] == tag && end - at >= units ? Math.min(best, end - at) : best;
      }
      return best;
    }

    boolean isUsable(int at, int tag) {
      return states[at] == tag || states[at] == Space.DONE || states[at] == Space.HOLE;
    }

    /** The pages to be mapped for a range, in units. */
    long cost(int from, int to) {
      long cost = 0;
      for (int at = from; at < to; at = up(at + 1)) {
        cost += states[at] == Space.HOLE ? PAGE : 0;
      }
      return cost;
    }

    /** Of the gap that is around a unit; MAX_VALUE if there is no hole in it. */
    long rank(int at, int tag) {
      int from = at;
      int to = at;
      while (from > 0 && isUsable(from - 1, tag)) {
        from--;
      }
      while (to < UNITS && isUsable(to, tag)) {
        to++;
      }
      long rank = to == UNITS ? Long.MAX_VALUE - 1 : to - from;
      return cost(from, to) > 0 ? rank : Long.MAX_VALUE;
    }
  }

  /** A place that is begun, of which nothing is mapped. */
  private record Begun(Growth growth, int from, int block, int units, int to, Model before) {
    int runs() {
      return 1 + (from < block ? 1 : 0) + (block + units < to ? 1 : 0);
    }
  }

  private static final class Program {
    private final Space space =
        new Space(BASE, bytes(UNITS), new Pieces(BASE, bytes(UNITS), bytes(PAGE)), () -> 0);
    private final Model model = new Model();
    private final SplittableRandom random;
    private final TreeMap<Integer, Integer> live = new TreeMap<>();
    private final TreeMap<Integer, Integer> pieces = new TreeMap<>();
    private final List<Begun> begun = new ArrayList<>();
    private final List<Victim> victims = new ArrayList<>();
    private long sequence;

    Program(SplittableRandom random) {
      this.random = random;
      for (int tag = 1; tag < TAGS; tag++) {
        space.addTag(tag);
      }
    }

    void step() {
      int choice = random.nextInt(100);
      if (choice < 40) {
        allocate();
      } else if (choice < 75) {
        free();
      } else if (choice < 82) {
        done();
      } else if (choice < 92) {
        end(choice < 90);
      } else if (choice < 96) {
        carve();
      } else if (!victims.isEmpty()) {
        end(victims.remove(random.nextInt(victims.size())));
      }
    }

    private int unit(long address) {
      return Math.toIntExact((address - BASE) >>> Space.UNIT_SHIFT);
    }

    private void allocate() {
      int units = 1 + random.nextInt(random.nextInt(3) == 0 ? 5 * PAGE : PAGE + 2);
      int tag = random.nextInt(TAGS);
      int ofDone = model.smallest(units, Space.DONE);
      int own = model.smallest(units, tag);
      int run = space.find(units, tag);
      if (Math.min(own, ofDone) > UNITS) {
        assertThat(run).as("a run for %d", units).isEqualTo(Space.NONE);
        begin(units, tag);
        return;
      }
      int at = unit(space.address(run));
      assertThat(space.units(run)).as("the smallest").isEqualTo(Math.min(own, ofDone));
      assertThat(model.states[at]).isEqualTo(own <= ofDone ? tag : Space.DONE);
      space.take(run, units);
      model.set(at, at + units, USED);
      live.put(at, units);
      assertThat(space.units(run)).isEqualTo(units);
    }

    private void begin(int units, int tag) {
      Place place = space.place(units, tag);
      long cost = Long.MAX_VALUE;
      long rank = Long.MAX_VALUE;
      for (int at = 0, usable = 0; at < UNITS; at++) {
        usable = model.isUsable(at, tag) ? usable + 1 : 0;
        int from = at + 1 - units;
        long of = usable < units ? Long.MAX_VALUE : model.cost(from, at + 1);
        long gap = of > cost || usable < units ? Long.MAX_VALUE : model.rank(at, tag);
        if (gap < Long.MAX_VALUE) {
          rank = of < cost ? gap : Math.min(gap, rank);
          cost = of;
        }
      }
      assertThat(place.isFound()).isEqualTo(cost < Long.MAX_VALUE);
      if (!place.isFound()) {
        return;
      }
      int at = unit(space.address(place.first)) + (int) place.offset;
      assertThat(place.cost).as("pages to map").isEqualTo(cost);
      assertThat(model.cost(at, at + units)).as("pages at the place").isEqualTo(cost);
      assertThat(model.rank(at, tag)).as("the gap").isEqualTo(rank);
      begin(place, at, units);
    }

    private void begin(Place place, int at, int units) {
      int end = at + units;
      int from = model.states[at] == Space.HOLE ? at / PAGE * PAGE : at;
      int to = model.states[end - 1] == Space.HOLE ? up(end) : end;
      Model before = new Model();
      System.arraycopy(model.states, 0, before.states, 0, UNITS);
      System.arraycopy(model.sequences, 0, before.sequences, 0, UNITS);
      Growth growth = space.begin(place, units);
      assertThat(unit(growth.address)).isEqualTo(from);
      assertThat(unit(growth.end())).isEqualTo(to);
      assertThat(growth.holeUnits()).isEqualTo(place.cost);
      assertThat(unit(space.address(growth.block()))).isEqualTo(at);
      model.set(from, to, USED);
      begun.add(new Begun(growth, from, at, units, to, before));
    }

    private void end(boolean isMapped) {
      if (begun.isEmpty()) {
        return;
      }
      Begun one = begun.remove(random.nextInt(begun.size()));
      if (isMapped) {
        map(one.growth);
        space.publish(one.growth);
        live.put(one.block, one.units);
        int end = one.block + one.units;
        if (one.from < one.block) {
          model.free(one.from, one.block, Space.DONE, 0);
        }
        if (end < one.to) {
          model.free(end, one.to, Space.DONE, 0);
        }
        return;
      }
      one.growth.abort();
      for (int at = one.from, end; at < one.to; at = end) {
        int state = one.before.states[at];
        end = Math.min(one.before.end(at), one.to);
        if (state == Space.HOLE) {
          model.set(at, end, state);
        } else {
          model.free(at, end, state, one.before.sequences[at]);
        }
      }
    }

    private void map(Growth growth) {
      long _ =
          growth.eachHole((address, size) -> {
            space.pieces.reserve(address, size);
            int end = unit(address + size);
            for (int at = unit(address), piece; at < end; at += piece) {
              piece = end - at >= 4 * PAGE && random.nextBoolean() ? 4 * PAGE : PAGE;
              space.pieces.add(BASE + bytes(at), bytes(piece));
              pieces.put(at, piece);
            }
            return size;
          });
    }

    private void free() {
      if (live.isEmpty()) {
        return;
      }
      Integer at = live.floorKey(random.nextInt(UNITS));
      int from = at == null ? live.firstKey() : at;
      int units = live.remove(from);
      int tag = random.nextInt(TAGS);
      space.give(runAt(from), tag, ++sequence, AgeList.NOW);
      model.free(from, from + units, tag, sequence);
    }

    private void done() {
      int tag = 1 + random.nextInt(TAGS - 1);
      long until = sequence - random.nextInt(12);
      space.done(tag, until);
      model.done(tag, until);
    }

    private void carve() {
      int wanted = 1 + random.nextInt(3 * PAGE);
      Victim victim = space.carve(wanted, OptionalLong.empty());
      if (victim == null) {
        assertThat(releasable()).as("to be released").isZero();
        return;
      }
      int from = unit(victim.address);
      int to = from + Math.toIntExact(victim.bytes >>> Space.UNIT_SHIFT);
      assertThat(model.states[from]).isEqualTo(Space.DONE);
      int end = model.end(from);
      Integer piece = pieces.lowerKey(from);
      assertThat(piece != null && model.end(piece) == end && piece + pieces.get(piece) <= end)
          .as("there is a piece before")
          .isFalse();
      int count = 0;
      int at = from;
      while (at - from < wanted && at < end && at + pieces.get(at) <= end) {
        at += pieces.get(at);
        count++;
      }
      assertThat(to).isEqualTo(at).isGreaterThan(from);
      assertThat(victim.pieces).isEqualTo(count);
      model.set(from, to, USED);
      victims.add(victim);
    }

    private void end(Victim victim) {
      int from = unit(victim.address);
      int to = from + (int) (victim.bytes >>> Space.UNIT_SHIFT);
      if (random.nextInt(3) > 0) {
        space.pieces.remove(victim.address, victim.bytes);
        pieces.subMap(from, to).clear();
        space.unmapped(victim);
        model.set(from, to, Space.HOLE);
      } else {
        space.restore(victim);
        model.free(from, to, Space.DONE, 0);
      }
    }

    /** The units of pieces that lie in free memory whose work is done. */
    private long releasable() {
      long units = 0;
      for (var piece : pieces.entrySet()) {
        int at = piece.getKey();
        boolean isDone = model.states[at] == Space.DONE;
        units += isDone && model.end(at) >= at + piece.getValue() ? piece.getValue() : 0;
      }
      return units;
    }

    private int firstRun() {
      int run = space.guard();
      while (space.blocks.prev(run) != Space.NONE) {
        run = space.blocks.prev(run);
      }
      return run;
    }

    private int runAt(int unit) {
      int run = firstRun();
      while (unit(space.address(run)) != unit) {
        run = space.blocks.next(run);
      }
      return run;
    }

    void check() {
      int used = 0;
      int free = 0;
      int holes = 0;
      long largest = 0;
      for (int run = firstRun(); run != space.guard(); run = space.blocks.next(run)) {
        int at = unit(space.address(run));
        int end = at + (int) space.units(run);
        int state = space.blocks.chunk(run);
        assertThat(model.states[at]).as("state at %d", at).isEqualTo(state);
        assertThat(model.end(at)).as("end at %d", at).matches(to -> to == end || state == USED);
        used += state == USED ? 1 : 0;
        holes += state == Space.HOLE ? 1 : 0;
        free += state >= 0 ? 1 : 0;
        largest = state >= 0 ? Math.max(largest, end - at) : largest;
        if (state > 0) {
          assertThat(space.blocks.base(run)).as("sequence").isEqualTo(model.sequences[at]);
        }
      }
      int inUse = live.size() + victims.size() + begun.stream().mapToInt(Begun::runs).sum();
      assertThat(used).as("runs in use").isEqualTo(inUse);
      assertThat(space.holes()).isEqualTo(holes);
      assertThat(space.freeRuns()).isEqualTo(free);
      assertThat(space.largestFree()).isEqualTo(largest);
      assertThat(space.releasableUnits()).as("releasable").isEqualTo(releasable());
      for (int tag = 0; tag < TAGS; tag++) {
        assertThat(space.freeUnits(tag)).isEqualTo(model.count(tag));
      }
      long taken = begun.stream().mapToLong(one -> one.to - one.from).sum();
      long unmapped = victims.stream().mapToLong(one -> one.bytes >>> Space.UNIT_SHIFT).sum();
      long kept = begun.stream().mapToLong(one -> one.growth.holeUnits()).sum();
      assertThat(taken).isGreaterThanOrEqualTo(kept);
      assertThat(space.mappedUnits())
          .as("mapped")
          .isEqualTo(UNITS - model.count(Space.HOLE) - unmapped - kept);
      space.assertValid();
    }
  }
}
