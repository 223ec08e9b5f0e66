package io.cuvette.internal.clock;

/**
 * What is done once an event is, that was recorded in a stream after this was taken.
 *
 * @param clock the stream's
 * @param noted uses of memory noted up to this number were queued before
 * @param queued all work that was queued when the clock showed this number comes before
 * @param known the work of other streams that this one waits for
 */
public record Moment(StreamClock clock, long noted, long queued, KnownWork known) {}
