import type { ComponentChildren, VNode } from "preact";

/** An element of a page as text: its name, its attributes and what is in it. Components are called, as Preact does. */
export interface Shown {
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly children: readonly (Shown | string)[];
}

/** What a view shows, without a browser: for views without hooks. */
export function shown(view: ComponentChildren): readonly (Shown | string)[] {
  if (view === null || view === undefined || typeof view === "boolean") return [];
  if (Array.isArray(view)) return view.flatMap(shown);
  if (typeof view !== "object") return [String(view)];
  const { type, props } = view as VNode<{ readonly children?: ComponentChildren }>;
  if (typeof type === "string") {
    const { children, ...attributes } = props;
    return [{ name: type, attributes, children: shown(children) }];
  }
  const component = type as unknown as { readonly prototype?: { render?: unknown } } & ((
    props: unknown,
  ) => ComponentChildren);
  if (component.prototype?.render === undefined) return shown(component(props));
  const instance = new (component as unknown as new (props: unknown) => { render(props: unknown): ComponentChildren })(
    props,
  );
  return shown(instance.render(props));
}

export function textOf(parts: readonly (Shown | string)[]): string {
  return parts.map((part) => (typeof part === "string" ? part : textOf(part.children))).join("");
}

export function elementsIn(parts: readonly (Shown | string)[]): readonly Shown[] {
  return parts.flatMap((part) => (typeof part === "string" ? [] : [part, ...elementsIn(part.children)]));
}
