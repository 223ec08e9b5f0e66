package io.cuvette.internal.observe;

import io.cuvette.driver.NvtxAttributes;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** A range as the flight recorder keeps it, once it has ended. Used by one thread at a time. */
@Name("io.cuvette.NvtxRange")
@Label("NVTX Range")
@Description("A range of time that the program marked; the thread is the one that ended it")
@Category({"Cuvette", "NVTX"})
@StackTrace(false)
final class RangeEvent extends Event {
  @Label("Domain")
  String domain = "";

  @Label("Message")
  String message = "";

  @Label("Category")
  int category;

  @Label("Color")
  @Description("ARGB, 8 bits each, in hexadecimal; empty for none")
  String color = "";

  @Label("Payload")
  String payload = "";

  @Label("Depth")
  @Description("How many ranges of the thread were around it; -1 for a range of no thread")
  int depth;

  void fill(String of, NvtxAttributes shown, int ranges) {
    domain = of;
    message = shown.message();
    category = shown.category();
    color = Shown.color(shown);
    payload = Shown.payload(shown);
    depth = ranges;
  }
}
