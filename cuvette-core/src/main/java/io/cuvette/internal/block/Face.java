package io.cuvette.internal.block;

/**
 * A buffer as users hold it. The engine has it made, sets its block and returns it, and does not
 * look into it: {@link Faces} does.
 */
public interface Face {}
