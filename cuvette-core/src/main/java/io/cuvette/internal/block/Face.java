package io.cuvette.internal.block;

/**
 * A buffer as users hold it. The engine has it made, tells it its block and hands it out, and does
 * not look into it: {@link Faces} does.
 */
public interface Face {}
