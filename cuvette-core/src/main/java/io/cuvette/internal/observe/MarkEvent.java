package io.cuvette.internal.observe;

import io.cuvette.driver.NvtxAttributes;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** A mark as the flight recorder keeps it. Confined to one thread. */
@Name("io.cuvette.NvtxMark")
@Label("NVTX Mark")
@Description("A moment that the program marked")
@Category({"Cuvette", "NVTX"})
@StackTrace(false)
final class MarkEvent extends Event {
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

  void fill(String of, NvtxAttributes shown) {
    domain = of;
    message = shown.message();
    category = shown.category();
    color = Shown.color(shown);
    payload = Shown.payload(shown);
  }
}
