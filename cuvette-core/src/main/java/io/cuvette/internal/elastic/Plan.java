package io.cuvette.internal.elastic;

import io.cuvette.internal.space.Growth;
import io.cuvette.internal.space.Victim;
import java.util.List;

/**
 * A place for a block.
 *
 * @param bytes to be mapped
 * @param victims to be unmapped first
 */
record Plan(Growth growth, long bytes, List<Victim> victims) {}
