package io.cuvette.sim.internal.schedule;

/** What a stream is captured by. Guarded by the driver's lock. */
public interface StreamCapture {}
