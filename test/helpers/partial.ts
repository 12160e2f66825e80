/** A value with some of the members of a type. */
type Partially<T> = T extends (...given: infer A) => infer R
  ? (...given: A) => Partially<R>
  : T extends readonly (infer E)[]
    ? readonly Partially<E>[]
    : T extends object
      ? { readonly [K in keyof T]?: Partially<T[K]> }
      : T;

/** A test double with only the members that the test needs. Unlike a cast, it checks the types of these members. */
export function partial<T>(members: Partially<NoInfer<T>>): T {
  return members as T;
}

/** A value whose type the compiler cannot check: it is wrong on purpose, or made by code without types. */
export function unchecked<T>(value: unknown): T {
  return value as T;
}
