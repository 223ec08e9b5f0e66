package io.cuvette.sim.internal.pool;

import io.cuvette.sim.internal.base.SettingText;
import java.util.BitSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Which devices can be peers. Immutable. */
public final class PeerRule {
  private static final Pattern PAIR = Pattern.compile("(\\d{1,9})-(\\d{1,9})");

  private final int devices;
  private final BitSet pairs;

  private PeerRule(int devices, BitSet pairs) {
    this.devices = devices;
    this.pairs = pairs;
  }

  public static PeerRule parse(String text, int devices) {
    BitSet pairs = new BitSet(devices * devices);
    if (text.equals("all")) {
      pairs.set(0, devices * devices);
    } else if (!text.equals("none")) {
      for (String pair : text.split("\\+", -1)) {
        Matcher matcher = PAIR.matcher(pair);
        if (!matcher.matches()) {
          throw SettingText.refused("peers", text, "all, none, or pairs such as 0-1+2-3");
        }
        int one = Integer.parseInt(matcher.group(1));
        int other = Integer.parseInt(matcher.group(2));
        if (one >= devices || other >= devices || one == other) {
          throw SettingText.refused(
              "peers", text, "pairs of two different devices from 0 to " + (devices - 1));
        }
        pairs.set(one * devices + other);
        pairs.set(other * devices + one);
      }
    }
    return new PeerRule(devices, pairs);
  }

  /** How many devices there are. */
  public int devices() {
    return devices;
  }

  /** Whether a device can address the memory of another; never its own, as the driver has it. */
  public boolean allows(int device, int peer) {
    return device != peer && pairs.get(device * devices + peer);
  }
}
