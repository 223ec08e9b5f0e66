package io.cuvette.sim.internal.queue;

/** What a stream is captured by. Guarded by the driver's lock. */
public interface StreamCapture {}
