import type { JSX } from "preact";
import type { Who } from "../../state/items.ts";

export function WhoWords({ who }: { readonly who: Who }): JSX.Element {
  if (who.kind === "you") return <>You</>;
  if (who.kind === "client" && who.name !== undefined) return <bdi>{who.name}</bdi>;
  return <>{who.kind === "client" ? "A client" : "User"}</>;
}
