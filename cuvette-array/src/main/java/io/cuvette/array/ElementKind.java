package io.cuvette.array;

/** What the bits of an element mean, without its size. */
enum ElementKind {
  BOOL,
  SIGNED,
  UNSIGNED,
  FLOATING,
  COMPLEX
}
