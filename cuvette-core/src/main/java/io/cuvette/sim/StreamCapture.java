package io.cuvette.sim;

/** What a stream is captured by. Guarded by the driver's lock. */
public interface StreamCapture {}
